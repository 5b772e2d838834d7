#include <cmath>

#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename A>
Vector<A> square_root(Vector<A> x) {
  for (int lane = 0; lane < kLanes<A>; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
}

template <typename A, typename C, bool HasCompute>
[[gnu::flatten]] void update_range(const typename AdamWKernels<A, C>::Factors& factors, const A* grad,
                                   int64_t num_elements, A* master, A* exp_avg, A* exp_avg_sq, C* compute) {
  const auto f = factors;  // a copy that the stores cannot change
  for_each_vector<A>(num_elements, [&](int64_t i, auto count, int) {
    const Vector<A> g = load<A>(grad + i, count) * f.gradient_scale;
    const Vector<A> m = load<A>(exp_avg + i, count) * f.beta1 + g * f.one_minus_beta1;
    const Vector<A> v = load<A>(exp_avg_sq + i, count) * f.beta2 + g * g * f.one_minus_beta2;
    const Vector<A> denominator = square_root<A>(v) * f.inverse_sqrt_correction2 + f.epsilon;
    const Vector<A> weight = load<A>(master + i, count) * f.decay - f.step_size * (m / denominator);
    store<A>(exp_avg + i, m, count);
    store<A>(exp_avg_sq + i, v, count);
    store<A>(master + i, weight, count);
    if constexpr (HasCompute) store<A>(compute + i, weight, count);
  });
}

template <typename A, typename C>
void update(const typename AdamWKernels<A, C>::Factors& factors, const A* grad, int64_t num_elements, A* master,
            A* exp_avg, A* exp_avg_sq, C* compute) {
  if (compute != nullptr) {
    update_range<A, C, true>(factors, grad, num_elements, master, exp_avg, exp_avg_sq, compute);
  } else {
    update_range<A, C, false>(factors, grad, num_elements, master, exp_avg, exp_avg_sq, compute);
  }
}

}  // namespace

template <>
AdamWKernels<float, Bf16> kernels_of<AdamWKernels<float, Bf16>, kInstructionSet>() {
  return {.update = update<float, Bf16>};
}
template <>
AdamWKernels<float, float> kernels_of<AdamWKernels<float, float>, kInstructionSet>() {
  return {.update = update<float, float>};
}
template <>
AdamWKernels<double, double> kernels_of<AdamWKernels<double, double>, kInstructionSet>() {
  return {.update = update<double, double>};
}

}  // namespace layline::trainer::kernels::simd
