#include <ATen/ATen.h>

#include "layline/trainer/kernels/attention.h"

namespace layline::trainer::kernels {
namespace {

// [B, S, K, D] as [B, N, S, D], each key-value head before the query heads that read it.
at::Tensor repeated_heads(const at::Tensor& x_BSKD, int64_t num_heads) {
  const at::Tensor x_BKSD = x_BSKD.transpose(1, 2);
  if (num_heads == x_BSKD.size(2)) return x_BKSD;
  return x_BKSD.repeat_interleave(num_heads / x_BSKD.size(2), 1);
}

// [B, N, S, D] as [B, S, K, D], the sum over the query heads of each key-value head.
at::Tensor summed_heads(const at::Tensor& x_BNSD, int64_t num_kv_heads) {
  if (num_kv_heads == x_BNSD.size(1)) return x_BNSD.transpose(1, 2).contiguous();
  return x_BNSD.unflatten(1, {num_kv_heads, x_BNSD.size(1) / num_kv_heads}).sum(2).transpose(1, 2).contiguous();
}

}  // namespace

AttentionOutput attention_flash(const at::Tensor& q_BSND, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD) {
  const int64_t num_heads = q_BSND.size(2);
  if (q_BSND.is_meta()) {
    const at::ScalarType statistics = q_BSND.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return {.out_BSND = at::empty(q_BSND.sizes(), q_BSND.options()),
            .saved = at::empty({q_BSND.size(0), num_heads, q_BSND.size(1)}, q_BSND.options().dtype(statistics))};
  }
  auto [out_BNSD, lse_BNS] = at::_scaled_dot_product_flash_attention_for_cpu(
      q_BSND.transpose(1, 2), repeated_heads(k_BSKD, num_heads), repeated_heads(v_BSKD, num_heads), 0.0, true);
  return {.out_BSND = out_BNSD.transpose(1, 2).contiguous(), .saved = lse_BNS.contiguous()};
}

AttentionGradients attention_flash_backward(const at::Tensor& dout_BSND, const at::Tensor& q_BSND,
                                            const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                                            const at::Tensor& out_BSND, const at::Tensor& lse_BNS) {
  if (q_BSND.is_meta()) {
    return {.dq_BSND = at::empty(q_BSND.sizes(), q_BSND.options()),
            .dk_BSKD = at::empty(k_BSKD.sizes(), k_BSKD.options()),
            .dv_BSKD = at::empty(v_BSKD.sizes(), v_BSKD.options())};
  }
  const int64_t num_heads = q_BSND.size(2);
  const int64_t num_kv_heads = k_BSKD.size(2);
  auto [dq_BNSD, dk_BNSD, dv_BNSD] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dout_BSND.transpose(1, 2), q_BSND.transpose(1, 2), repeated_heads(k_BSKD, num_heads),
      repeated_heads(v_BSKD, num_heads), out_BSND.transpose(1, 2), lse_BNS, 0.0, true);
  return {.dq_BSND = dq_BNSD.transpose(1, 2).contiguous(),
          .dk_BSKD = summed_heads(dk_BNSD, num_kv_heads),
          .dv_BSKD = summed_heads(dv_BNSD, num_kv_heads)};
}

}  // namespace layline::trainer::kernels
