#include "layline/trainer/kernels/adamw.h"

#include <ATen/ATen.h>

#include <cmath>

namespace layline::trainer::kernels {

void adamw_(at::Tensor master_N, at::Tensor exp_avg_N, at::Tensor exp_avg_sq_N, const at::Tensor& grad_N,
            const std::optional<at::Tensor>& compute_N, const AdamWStep& step) {
  const auto count = static_cast<double>(step.step);
  const double correction1 = 1 - std::pow(step.beta1, count);
  const double correction2 = 1 - std::pow(step.beta2, count);
  const at::Tensor grad = grad_N * step.gradient_scale;
  master_N.mul_(1 - step.learning_rate * step.weight_decay);
  exp_avg_N.lerp_(grad, 1 - step.beta1);
  exp_avg_sq_N.mul_(step.beta2).addcmul_(grad, grad, 1 - step.beta2);
  const at::Tensor denominator = (exp_avg_sq_N.sqrt() / std::sqrt(correction2)).add_(step.epsilon);
  master_N.addcdiv_(exp_avg_N, denominator, -step.learning_rate / correction1);
  if (compute_N) at::Tensor(*compute_N).copy_(master_N);
}

double sum_of_squares(const at::Tensor& x_N) {
  if (x_N.is_meta()) return 0;
  return x_N.to(at::kDouble).square().sum().item<double>();
}

bool all_finite(const at::Tensor& x_N) { return std::isfinite(sum_of_squares(x_N)); }

}  // namespace layline::trainer::kernels
