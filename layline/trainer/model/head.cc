#include "layline/trainer/model/head.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cassert>
#include <vector>

#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/kernels/cross_entropy.h"
#include "layline/trainer/model/parallel_linear.h"
#include "layline/trainer/tally/tally.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::model {

namespace {

// Logits of a chunk: large enough for full speed of the matrix product, small beside a layer's activations.
constexpr int64_t kChunkLogits = int64_t{1} << 23;
constexpr int64_t kSmallestChunk = 64;  // tokens

struct Chunk {
  at::Tensor logits_TV;  // gradients after loss_and_gradient
  at::Tensor targets_T;  // column of this rank, or −1
  at::Tensor scale_T;    // loss_scale, or 0 where the target is ignored
};

at::ScalarType wide_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Σ scale · loss of the chunk over all ranks' columns; the logits become their gradients.
at::Tensor loss_and_gradient(const Chunk& chunk, const VocabularyPart& part, Context& context) {
  if (context.tp_size() == 1) {
    const at::Tensor loss_T =
        kernels::cross_entropy_fused_(chunk.logits_TV, chunk.targets_T, chunk.scale_T, part.num_valid);
    return (loss_T * chunk.scale_T).sum();
  }
  kernels::ChunkStats stats = kernels::make_chunk_stats(chunk.logits_TV);
  kernels::cross_entropy_local_max(chunk.logits_TV, stats.max_T, part.num_valid);
  {
    const tally::WorkScope work(tally::Work::kTensorParallel);
    context.tp->all_reduce_max(stats.max_T);
  }
  kernels::cross_entropy_local_sums(chunk.logits_TV, stats.max_T, chunk.targets_T, stats.sum_exp_T,
                                    stats.target_logit_T, part.num_valid);
  const at::Tensor sums = at::stack({stats.sum_exp_T, stats.target_logit_T});
  sum_over_tp(sums, context);
  stats.sum_exp_T = sums[0], stats.target_logit_T = sums[1];
  kernels::cross_entropy_gradient_(chunk.logits_TV, stats.max_T, stats.sum_exp_T, chunk.targets_T, chunk.scale_T,
                                   part.num_valid);
  return ((stats.sum_exp_T.log() - stats.target_logit_T) * chunk.scale_T).sum();
}

int64_t chunk_tokens(int64_t num_columns) {
  return std::max(kSmallestChunk, kChunkLogits / std::max<int64_t>(num_columns, 1));
}

}  // namespace

at::Tensor head_loss(const Activation& hidden, const ParameterGroup& weight, const VocabularyPart& part,
                     const at::Tensor& targets_SB, double loss_scale, Context& context) {
  const bool wants_gradient = at::GradMode::is_enabled();
  at::Tensor loss, dx;
  {
    const at::NoGradGuard no_grad;
    const tally::OwnerScope owner(tally::Owner::kLogits);
    const at::Tensor x = gather_sequence(hidden.tensor, context);
    const at::Tensor x_TH = x.flatten(0, 1);
    const at::Tensor targets_T = targets_SB.reshape(-1);
    const at::ScalarType wide = wide_type(x);
    const at::Tensor is_counted = targets_T != kIgnoredTarget;
    const at::Tensor local = targets_T - part.first;
    const at::Tensor is_here = is_counted & (local >= 0) & (local < part.size);
    const at::Tensor columns_T = local.masked_fill(~is_here, -1);
    const at::Tensor scale_T = is_counted.to(wide) * loss_scale;

    loss = at::zeros({}, x.options().dtype(wide));
    if (wants_gradient) dx = at::empty_like(x);
    const int64_t num_tokens = x_TH.size(0), step = chunk_tokens(part.size);
    for (int64_t first = 0; first < num_tokens; first += step) {
      const int64_t n = std::min(step, num_tokens - first);
      const at::Tensor x_chunk = x_TH.narrow(0, first, n);
      const Chunk chunk{product(x_chunk, weight.value), columns_T.narrow(0, first, n), scale_T.narrow(0, first, n)};
      loss += loss_and_gradient(chunk, part, context);
      if (!wants_gradient) continue;
      at::Tensor dx_chunk = dx.flatten(0, 1).narrow(0, first, n);
      {
        const tally::WorkScope work(tally::Work::kMatrixMultiplication);
        at::mm_out(dx_chunk, chunk.logits_TV, weight.value);
      }
      add_product(weight, chunk.logits_TV, x_chunk);
    }
    if (wants_gradient) {
      weight.notify();
      if (context.shards_sequence()) {
        dx = reduce_to_sequence_part(dx, context);
      } else if (context.tp_size() > 1) {
        sum_over_tp(dx, context);
      }
    }
  }
  return with_backward(loss, {hidden.tensor},
                       [dx]([[maybe_unused]] const at::Tensor& dloss) -> std::vector<at::Tensor> {
                         assert((dloss.is_meta() || dloss.item<double>() == 1.0) &&
                                "the head's gradient was computed for a loss with gradient one");
                         return {dx};
                       });
}

at::Tensor head_logits(const at::Tensor& hidden, const ParameterGroup& weight, Context& context) {
  const at::NoGradGuard no_grad;
  return product(gather_sequence(hidden, context), weight.value);
}

}  // namespace layline::trainer::model
