// Causal self-attention with grouped queries, scores scaled by 1 / sqrt(D).
//
// Shapes: B micro-batch, S sequence, N query heads, K key-value heads (divides N; query head n reads key-value head
// n / (N / K)), D head size. D is contiguous, other strides are free, so slices of a joint query-key-value projection
// work; results are contiguous. bf16, fp32, fp64 on the CPU. On the meta device outputs are allocated and nothing is
// computed.
#pragma once

#include <ATen/core/Tensor.h>

namespace layline::trainer::kernels {

struct AttentionOutput {
  at::Tensor out_BSND;
  at::Tensor saved;  // for the backward pass: of attention_flash lse_BNS, the natural logarithm of the sum of
                     // exponentials of a row's scores (fp32; fp64 for fp64); of attention_unfused the probabilities
                     // [B, N, S, S] in the dtype of q
};

struct AttentionGradients {
  at::Tensor dq_BSND;
  at::Tensor dk_BSKD;
  at::Tensor dv_BSKD;
};

// In blocks that stay in the cache (Dao, arXiv:2307.08691): nothing of size S² is kept.
AttentionOutput attention_flash(const at::Tensor& q_BSND, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD);
AttentionGradients attention_flash_backward(const at::Tensor& dout_BSND, const at::Tensor& q_BSND,
                                            const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                                            const at::Tensor& out_BSND, const at::Tensor& lse_BNS);

// Scores, mask, soft-max (in fp32 for bf16) and the product with the values, one after the other.
AttentionOutput attention_unfused(const at::Tensor& q_BSND, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD);
AttentionGradients attention_unfused_backward(const at::Tensor& dout_BSND, const at::Tensor& q_BSND,
                                              const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                                              const at::Tensor& probabilities_BNSS);

}  // namespace layline::trainer::kernels
