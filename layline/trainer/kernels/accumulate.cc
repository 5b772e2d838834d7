#include "layline/trainer/kernels/accumulate.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

template <typename A, typename T>
void add(const at::Tensor& main, const at::Tensor& grad) {
  const auto run = kernels<simd::AccumulateKernels<A, T>>().add;
  parallel_rows(main.numel(), 1,
                [&](int64_t begin, int64_t end) { run(data<T>(grad) + begin, end - begin, data<A>(main) + begin); });
}

}  // namespace

void accumulate_(const at::Tensor& main, const at::Tensor& grad) {
  TORCH_CHECK(main.sizes() == grad.sizes(), "a gradient of ", grad.sizes(), " is added to one of ", main.sizes());
  const at::ScalarType main_type = main.scalar_type();
  const at::ScalarType type = grad.scalar_type();
  TORCH_CHECK(arithmetic_type(grad) == main_type, "a gradient in ", type, " is added to one in ", main_type);
  if (main.is_meta()) return;
  if (!main.is_contiguous() || !grad.is_contiguous()) {
    const at::NoGradGuard no_grad;
    main.add_(grad);
  } else if (type == at::kDouble) {
    add<double, double>(main, grad);
  } else if (type == at::kFloat) {
    add<float, float>(main, grad);
  } else {
    TORCH_CHECK(type == at::kBFloat16, "a gradient in ", type);
    add<float, simd::Bf16>(main, grad);
  }
}

}  // namespace layline::trainer::kernels
