#include "layline/trainer/kernels/adamw.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

template <typename A, typename C>
void update(const at::Tensor& master_N, const at::Tensor& exp_avg_N, const at::Tensor& exp_avg_sq_N,
            const at::Tensor& grad_N, C* compute, const AdamWStep& step) {
  const auto count = static_cast<double>(step.step);
  const double correction1 = 1 - std::pow(step.beta1, count);
  const double correction2 = 1 - std::pow(step.beta2, count);
  const typename simd::AdamWKernels<A, C>::Factors factors = {
      .gradient_scale = static_cast<A>(step.gradient_scale),
      .decay = static_cast<A>(1 - step.learning_rate * step.weight_decay),
      .beta1 = static_cast<A>(step.beta1),
      .one_minus_beta1 = static_cast<A>(1 - step.beta1),
      .beta2 = static_cast<A>(step.beta2),
      .one_minus_beta2 = static_cast<A>(1 - step.beta2),
      .inverse_sqrt_correction2 = static_cast<A>(1 / std::sqrt(correction2)),
      .epsilon = static_cast<A>(step.epsilon),
      .step_size = static_cast<A>(step.learning_rate / correction1)};
  const auto run = kernels<simd::AdamWKernels<A, C>>().update;
  parallel_rows(master_N.numel(), 1, [&](int64_t begin, int64_t end) {
    run(factors, data<A>(grad_N) + begin, end - begin, data<A>(master_N) + begin, data<A>(exp_avg_N) + begin,
        data<A>(exp_avg_sq_N) + begin, compute == nullptr ? nullptr : compute + begin);
  });
}

}  // namespace

void adamw_(const at::Tensor& master_N, const at::Tensor& exp_avg_N, const at::Tensor& exp_avg_sq_N,
            const at::Tensor& grad_N, const std::optional<at::Tensor>& compute_N, const AdamWStep& step) {
  const at::ScalarType dtype = master_N.scalar_type();
  const at::ScalarType compute_type = compute_N ? compute_N->scalar_type() : dtype;
  TORCH_CHECK(dtype == at::kFloat || dtype == at::kDouble, "master weights are fp32 or fp64, not ", dtype);
  TORCH_CHECK(compute_type == dtype || (dtype == at::kFloat && compute_type == at::kBFloat16), "no copy in ",
              compute_type, " of master weights in ", dtype);
  for (const at::Tensor& tensor : {master_N, exp_avg_N, exp_avg_sq_N, grad_N}) {
    check_dense(tensor, "a tensor of the optimizer", dtype, master_N.numel());
  }
  if (compute_N) check_dense(*compute_N, "compute_N", compute_type, master_N.numel());
  if (master_N.is_meta()) return;
  if (dtype == at::kDouble) {
    double* compute = compute_N ? data<double>(*compute_N) : nullptr;
    update<double, double>(master_N, exp_avg_N, exp_avg_sq_N, grad_N, compute, step);
  } else if (compute_type == at::kFloat) {
    float* compute = compute_N ? data<float>(*compute_N) : nullptr;
    update<float, float>(master_N, exp_avg_N, exp_avg_sq_N, grad_N, compute, step);
  } else {
    update<float, simd::Bf16>(master_N, exp_avg_N, exp_avg_sq_N, grad_N, data<simd::Bf16>(*compute_N), step);
  }
}

double sum_of_squares(const at::Tensor& x_N) {
  check_dense(x_N, "x_N", x_N.scalar_type(), x_N.numel());
  if (x_N.is_meta()) return 0;
  constexpr int64_t kBlock = 65536;
  const int64_t num_elements = x_N.numel();
  std::vector<double> blocks((num_elements + kBlock - 1) / kBlock);
  visit_element_type(x_N.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto sum = kernels<simd::SumOfSquaresKernels<T>>().sum;
    parallel_tasks(static_cast<int64_t>(blocks.size()), [&](int64_t block) {
      const int64_t begin = block * kBlock;
      blocks[block] = sum(data<T>(x_N) + begin, std::min(kBlock, num_elements - begin));
    });
  });
  double total = 0;
  for (const double block : blocks) total += block;
  return total;
}

bool all_finite(const at::Tensor& x_N) { return std::isfinite(sum_of_squares(x_N)); }

}  // namespace layline::trainer::kernels
