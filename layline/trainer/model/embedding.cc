#include "layline/trainer/model/embedding.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <vector>

#include "layline/trainer/model/mutation.h"
#include "layline/trainer/model/parallel_linear.h"

namespace layline::trainer::model {

namespace {

// Adds rows of dy [T, H] to the rows `indices` of the table's main gradient; those of other ranks have index −1.
void add_table_gradient(const ParameterGroup& table, const at::Tensor& indices_T, const at::Tensor& dy_TH) {
  const at::Tensor here = (indices_T >= 0).nonzero().squeeze(1);
  table.main_grad.index_add_(0, indices_T.index_select(0, here),
                             dy_TH.index_select(0, here).to(table.main_grad.scalar_type()));
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
  at::Tensor output, indices;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor local = tokens_SB - part.first;
    const at::Tensor is_here = (local >= 0).logical_and(local < part.size);
    indices = local.masked_fill(is_here.logical_not(), -1).reshape(-1);
    output = at::embedding(table.value, local.masked_fill(is_here.logical_not(), 0));
    if (context.tp_size() > 1) {
      output.masked_fill_(is_here.logical_not().unsqueeze(2), 0);
      if (context.shards_sequence()) {
        output = reduce_to_sequence_part(output, context);
      } else {
        context.tp->all_reduce(output);
      }
    }
  }
  return with_backward(output, {}, [indices, &table, &context](const at::Tensor& dy) -> std::vector<at::Tensor> {
    const at::Tensor dy_whole = gather_sequence(dy, context);
    context.weight_gradients.add(
        [indices, dy_whole, &table] { add_table_gradient(table, indices, dy_whole.flatten(0, 1)); });
    return {};
  });
}

}  // namespace layline::trainer::model
