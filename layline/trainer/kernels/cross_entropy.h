// Cross-entropy of a chunk of logits of a vocab-parallel head (Megatron-LM, arXiv:1909.08053, section 3), in three
// passes between which the ranks exchange one number a token:
//
//   ChunkStats stats = …;
//   cross_entropy_local_max(logits_TV, stats.max_T, n);                                    all_reduce_max(max_T)
//   cross_entropy_local_sums(logits_TV, stats.max_T, targets_T, stats.sum_exp_T, stats.target_logit_T, n);
//                                                                    all_reduce(sum_exp_T), all_reduce(target_logit_T)
//   loss_T = stats.sum_exp_T.log() - stats.target_logit_T;
//   cross_entropy_gradient_(logits_TV, stats.max_T, stats.sum_exp_T, targets_T, scale_T, n);
//
// Shapes: T tokens of the chunk, V vocabulary of this rank, padding included. Columns from num_valid_columns on are
// padding: not in max or sums, and their gradient is 0. With num_valid_columns 0 the maximum is -infinity and the sums
// are 0. targets_T: int64, the column on this rank, or -1 where the target is elsewhere or the token is masked.
// Statistics, scale and loss are fp32 (fp64 for fp64); logits bf16, fp32, fp64, contiguous. Nothing happens on meta.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace layline::trainer::kernels {

struct ChunkStats {
  at::Tensor max_T;
  at::Tensor sum_exp_T;       // of exp(logit - max)
  at::Tensor target_logit_T;  // minus max; 0 where the target is not here
};

// Tensors of T elements for logits of that dtype, on the device of logits; their values are undefined.
ChunkStats make_chunk_stats(const at::Tensor& logits_TV);

void cross_entropy_local_max(const at::Tensor& logits_TV, const at::Tensor& max_T, int64_t num_valid_columns);

void cross_entropy_local_sums(const at::Tensor& logits_TV, const at::Tensor& max_T, const at::Tensor& targets_T,
                              const at::Tensor& sum_exp_T, const at::Tensor& target_logit_T, int64_t num_valid_columns);

// Overwrites the logits by d(sum of scale · loss) / d(logits) = (softmax - one_hot(target)) · scale, rounded once.
// scale_T: a factor for each token, 0 for masked ones (whose gradient is then 0).
void cross_entropy_gradient_(const at::Tensor& logits_TV, const at::Tensor& max_T, const at::Tensor& sum_exp_T,
                             const at::Tensor& targets_T, const at::Tensor& scale_T, int64_t num_valid_columns);

// All of it for a head that is not sharded: returns loss_T (0 where the target is -1) and overwrites the logits by
// their gradient.
at::Tensor cross_entropy_fused_(const at::Tensor& logits_TV, const at::Tensor& targets_T, const at::Tensor& scale_T,
                                int64_t num_valid_columns);

}  // namespace layline::trainer::kernels
