#include "layline/trainer/model/norm.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <vector>

#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/kernels/rms_norm.h"

namespace layline::trainer::model {

namespace {

at::Tensor fused(const at::Tensor& x, const ParameterGroup& weight, const kernels::RmsNormOutput& normed) {
  return with_backward(normed.y_TH, {x},
                       [x = plain(x), rstd = normed.rstd_T, &weight](const at::Tensor& dy) -> std::vector<at::Tensor> {
                         at::Tensor dx = kernels::rms_norm_backward(dy, x, rstd, weight.value, weight.main_grad);
                         weight.notify();
                         return {dx};
                       });
}

// x · w, with the weight's gradient.
at::Tensor scale(const at::Tensor& x, const ParameterGroup& weight) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = x * weight.value;
  }
  return with_backward(output, {x}, [x = plain(x), &weight](const at::Tensor& dy) -> std::vector<at::Tensor> {
    const at::ScalarType wide = weight.main_grad.scalar_type();
    const at::Tensor products = (dy.to(wide) * x.to(wide)).reshape({-1, x.size(-1)});
    kernels::accumulate_(weight.main_grad, products.sum(0));
    weight.notify();
    return {dy * weight.value};
  });
}

at::Tensor unfused(const at::Tensor& x, const ParameterGroup& weight, double epsilon) {
  const at::Tensor wide = x.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor mean_square = wide.square().mean(-1, /*keepdim=*/true);
  return scale((wide * at::rsqrt(mean_square + epsilon)).to(x.scalar_type()), weight);
}

}  // namespace

Activation rms_norm(const at::Tensor& x, const ParameterGroup& weight, Context& context) {
  if (context.norm == layout::NormKernel::kUnfused) {
    const auto function = [&weight, epsilon = context.norm_epsilon](const at::Tensor& input) {
      return unfused(input, weight, epsilon);
    };
    if (!context.recomputes_attention_and_norms) {
      const at::Tensor y = function(x);
      return {y, Saved(y)};
    }
    return {checkpoint(function, x), Saved([function, x = plain(x)] { return function(x); })};
  }
  kernels::RmsNormOutput normed;
  {
    const at::NoGradGuard no_grad;
    normed = kernels::rms_norm(x, weight.value, context.norm_epsilon);
  }
  const at::Tensor y = fused(x, weight, normed);
  if (!context.recomputes_attention_and_norms) return {y, Saved(y)};
  return {y, Saved([x = plain(x), rstd = normed.rstd_T, &weight] {
            return kernels::rms_norm_apply(x, rstd, weight.value);
          })};
}

}  // namespace layline::trainer::model
