#include "layline/trainer/kernels/cross_entropy.h"

#include <ATen/ATen.h>

#include <limits>

namespace layline::trainer::kernels {
namespace {

at::ScalarType arithmetic_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor valid_columns(const at::Tensor& logits_TV, int64_t num_valid_columns) {
  return logits_TV.narrow(1, 0, num_valid_columns).to(arithmetic_type(logits_TV));
}

}  // namespace

ChunkStats make_chunk_stats(const at::Tensor& logits_TV) {
  const at::TensorOptions options = logits_TV.options().dtype(arithmetic_type(logits_TV));
  const int64_t num_tokens = logits_TV.size(0);
  return {.max_T = at::empty({num_tokens}, options),
          .sum_exp_T = at::empty({num_tokens}, options),
          .target_logit_T = at::empty({num_tokens}, options)};
}

void cross_entropy_local_max(const at::Tensor& logits_TV, at::Tensor max_T, int64_t num_valid_columns) {
  if (num_valid_columns == 0) {
    max_T.fill_(-std::numeric_limits<double>::infinity());
  } else {
    max_T.copy_(valid_columns(logits_TV, num_valid_columns).amax(1));
  }
}

void cross_entropy_local_sums(const at::Tensor& logits_TV, const at::Tensor& max_T, const at::Tensor& targets_T,
                              at::Tensor sum_exp_T, at::Tensor target_logit_T, int64_t num_valid_columns) {
  sum_exp_T.zero_();
  target_logit_T.zero_();
  if (num_valid_columns == 0) return;
  const at::Tensor shifted = valid_columns(logits_TV, num_valid_columns) - max_T.unsqueeze(1);
  sum_exp_T.copy_(shifted.exp().sum(1));
  const at::Tensor picked = shifted.gather(1, targets_T.clamp_min(0).unsqueeze(1)).squeeze(1);
  target_logit_T.copy_(at::where(targets_T >= 0, picked, at::zeros_like(picked)));
}

void cross_entropy_gradient_(at::Tensor logits_TV, const at::Tensor& max_T, const at::Tensor& sum_exp_T,
                             const at::Tensor& targets_T, const at::Tensor& scale_T, int64_t num_valid_columns) {
  at::Tensor gradient =
      (valid_columns(logits_TV, num_valid_columns) - max_T.unsqueeze(1)).exp() / sum_exp_T.unsqueeze(1);
  if (num_valid_columns > 0) {
    const at::Tensor is_here = (targets_T >= 0).to(gradient.scalar_type());
    gradient.scatter_add_(1, targets_T.clamp_min(0).unsqueeze(1), -is_here.unsqueeze(1));
  }
  logits_TV.zero_();
  logits_TV.narrow(1, 0, num_valid_columns).copy_(gradient * scale_T.unsqueeze(1));
}

at::Tensor cross_entropy_fused_(at::Tensor logits_TV, const at::Tensor& targets_T, const at::Tensor& scale_T,
                                int64_t num_valid_columns) {
  const ChunkStats stats = make_chunk_stats(logits_TV);
  if (logits_TV.is_meta()) return stats.max_T;
  cross_entropy_local_max(logits_TV, stats.max_T, num_valid_columns);
  cross_entropy_local_sums(logits_TV, stats.max_T, targets_T, stats.sum_exp_T, stats.target_logit_T, num_valid_columns);
  cross_entropy_gradient_(logits_TV, stats.max_T, stats.sum_exp_T, targets_T, scale_T, num_valid_columns);
  const at::Tensor loss_T = stats.sum_exp_T.log() - stats.target_logit_T;
  return at::where(targets_T >= 0, loss_T, at::zeros_like(loss_T));
}

}  // namespace layline::trainer::kernels
