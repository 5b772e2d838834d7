#include "layline/trainer/model/embedding.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "layline/trainer/kernels/embedding.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/model/parallel_linear.h"

namespace layline::trainer::model {

namespace {

// The row of the table that each token reads, or −1 where another rank has it.
at::Tensor local_rows(const at::Tensor& tokens_SB, const VocabularyPart& part) {
  const at::Tensor local = tokens_SB - part.first;
  const at::Tensor is_elsewhere = (local < 0) | (local >= part.size);
  return local.masked_fill(is_elsewhere, -1).contiguous();
}

void add_table_gradient(const ParameterGroup& table, const at::Tensor& rows_SB, const at::Tensor& dy) {
  kernels::add_to_rows_(table.main_grad, rows_SB, dy);
  table.notify();
}

}  // namespace

VocabularyPart vocabulary_part(int64_t vocab, int64_t tp_size, int64_t tp_rank) {
  const int64_t size = (vocab + tp_size - 1) / tp_size;
  const int64_t first = size * tp_rank;
  const int64_t num_valid = mutated(Mutation::kSkipPaddingMask) ? size : std::clamp<int64_t>(vocab - first, 0, size);
  return {first, size, num_valid};
}

at::Tensor embed(const at::Tensor& tokens_SB, const ParameterGroup& table, const VocabularyPart& part,
                 Context& context) {
  at::Tensor output, rows_SB;
  {
    const at::NoGradGuard no_grad;
    rows_SB = local_rows(tokens_SB, part);
    output = kernels::read_rows(table.value, rows_SB);
    if (context.shards_sequence()) {
      output = reduce_to_sequence_part(output, context);
    } else if (context.tp_size() > 1) {
      sum_over_tp(output, context);
    }
  }
  return with_backward(output, {}, [rows_SB, &table, &context](const at::Tensor& dy) -> std::vector<at::Tensor> {
    const at::Tensor dy_whole = gather_sequence(dy, context);
    context.weight_gradients.add([rows_SB, dy_whole, &table] { add_table_gradient(table, rows_SB, dy_whole); });
    return {};
  });
}

}  // namespace layline::trainer::model
