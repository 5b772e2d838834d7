#include "layline/trainer/kernels/rms_norm.h"

#include <ATen/ATen.h>

namespace layline::trainer::kernels {
namespace {

at::ScalarType arithmetic_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace

RmsNormOutput rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, double epsilon) {
  const at::Tensor x = x_TH.to(arithmetic_type(x_TH));
  const at::Tensor rstd_T = (x.square().mean(-1) + epsilon).rsqrt().reshape(-1);
  return {.y_TH = rms_norm_apply(x_TH, rstd_T, weight_H), .rstd_T = rstd_T};
}

at::Tensor rms_norm_apply(const at::Tensor& x_TH, const at::Tensor& rstd_T, const at::Tensor& weight_H) {
  const at::Tensor x = x_TH.to(arithmetic_type(x_TH)).reshape({-1, x_TH.size(-1)});
  return (x * rstd_T.unsqueeze(-1) * weight_H.to(x.scalar_type())).to(x_TH.scalar_type()).reshape(x_TH.sizes());
}

at::Tensor rms_norm_backward(const at::Tensor& dy_TH, const at::Tensor& x_TH, const at::Tensor& rstd_T,
                             const at::Tensor& weight_H, at::Tensor dweight_H,
                             const std::optional<at::Tensor>& residual_TH) {
  const at::Tensor x = x_TH.to(arithmetic_type(x_TH)).reshape({-1, x_TH.size(-1)});
  const at::Tensor dy = dy_TH.to(x.scalar_type()).reshape(x.sizes());
  const at::Tensor rstd = rstd_T.unsqueeze(-1);
  const at::Tensor g = dy * weight_H.to(x.scalar_type());
  dweight_H.add_((dy * x * rstd).sum(0));
  at::Tensor dx = g * rstd - x * rstd.pow(3) * (g * x).mean(-1, true);
  if (residual_TH) dx = dx + residual_TH->to(x.scalar_type()).reshape(x.sizes());
  return dx.to(x_TH.scalar_type()).reshape(x_TH.sizes());
}

}  // namespace layline::trainer::kernels
