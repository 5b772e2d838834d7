#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "layline/trainer/kernels/attention.h"

namespace layline::trainer::kernels {
namespace {

// [B, S, K, D] as [B, N, S, D], each key-value head before the query heads that read it.
at::Tensor repeated_heads(const at::Tensor& x_BSKD, int64_t num_heads) {
  at::Tensor x_BKSD = x_BSKD.transpose(1, 2);
  if (num_heads == x_BSKD.size(2)) return x_BKSD;
  return x_BKSD.repeat_interleave(num_heads / x_BSKD.size(2), 1);
}

// [B, N, S, D] as [B, S, K, D], the sum over the query heads of each key-value head.
at::Tensor summed_heads(const at::Tensor& x_BNSD, int64_t num_kv_heads) {
  if (num_kv_heads == x_BNSD.size(1)) return x_BNSD.transpose(1, 2).contiguous();
  return x_BNSD.unflatten(1, {num_kv_heads, x_BNSD.size(1) / num_kv_heads}).sum(2).transpose(1, 2).contiguous();
}

double score_scale(const at::Tensor& q) { return 1 / std::sqrt(static_cast<double>(q.size(-1))); }

at::ScalarType softmax_type(const at::Tensor& q) { return q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

}  // namespace

AttentionOutput attention_unfused(const at::Tensor& q_BSND, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD) {
  const int64_t num_heads = q_BSND.size(2);
  const at::Tensor q_BNSD = q_BSND.transpose(1, 2);
  at::Tensor scores = at::matmul(q_BNSD, repeated_heads(k_BSKD, num_heads).transpose(2, 3)).mul_(score_scale(q_BSND));
  const at::Tensor future = at::ones({q_BSND.size(1), q_BSND.size(1)}, q_BSND.options().dtype(at::kBool)).triu(1);
  scores.masked_fill_(future, -std::numeric_limits<double>::infinity());
  at::Tensor probabilities = at::softmax(scores, -1, softmax_type(q_BSND)).to(q_BSND.scalar_type());
  at::Tensor out_BSND = at::matmul(probabilities, repeated_heads(v_BSKD, num_heads)).transpose(1, 2).contiguous();
  return {.out_BSND = out_BSND, .saved = probabilities};
}

AttentionGradients attention_unfused_backward(const at::Tensor& dout_BSND, const at::Tensor& q_BSND,
                                              const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                                              const at::Tensor& probabilities_BNSS) {
  const int64_t num_heads = q_BSND.size(2);
  const int64_t num_kv_heads = k_BSKD.size(2);
  const at::Tensor dout_BNSD = dout_BSND.transpose(1, 2);
  const at::Tensor dv_BNSD = at::matmul(probabilities_BNSS.transpose(2, 3), dout_BNSD);
  const at::Tensor dp = at::matmul(dout_BNSD, repeated_heads(v_BSKD, num_heads).transpose(2, 3));
  const at::Tensor p = probabilities_BNSS.to(softmax_type(q_BSND));
  const at::Tensor dp_wide = dp.to(p.scalar_type());
  const at::Tensor ds = (p * (dp_wide - (p * dp_wide).sum(-1, true)) * score_scale(q_BSND)).to(q_BSND.scalar_type());
  const at::Tensor dq_BNSD = at::matmul(ds, repeated_heads(k_BSKD, num_heads));
  const at::Tensor dk_BNSD = at::matmul(ds.transpose(2, 3), q_BSND.transpose(1, 2));
  return {.dq_BSND = dq_BNSD.transpose(1, 2).contiguous(),
          .dk_BSKD = summed_heads(dk_BNSD, num_kv_heads),
          .dv_BSKD = summed_heads(dv_BNSD, num_kv_heads)};
}

}  // namespace layline::trainer::kernels
