#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename T>
[[gnu::flatten]] double sum_of_squares(const T* x, int64_t num_elements) {
  Accumulator<double> squares;
  for_each_vector<double>(num_elements, [&](int64_t i, auto count, int slot) {
    const Vector<double> value = load<double>(x + i, count);
    squares.slots[slot] += value * value;
  });
  return squares.sum();
}

template <typename A, typename T>
[[gnu::flatten]] void add(const T* grad, int64_t num_elements, A* main) {
  for_each_vector<A>(num_elements, [&](int64_t i, auto count, int) {
    store<A>(main + i, load<A>(main + i, count) + load<A>(grad + i, count), count);
  });
}

}  // namespace

template <>
SumOfSquaresKernels<Bf16> kernels_of<SumOfSquaresKernels<Bf16>, kInstructionSet>() {
  return {.sum = sum_of_squares<Bf16>};
}
template <>
SumOfSquaresKernels<float> kernels_of<SumOfSquaresKernels<float>, kInstructionSet>() {
  return {.sum = sum_of_squares<float>};
}
template <>
SumOfSquaresKernels<double> kernels_of<SumOfSquaresKernels<double>, kInstructionSet>() {
  return {.sum = sum_of_squares<double>};
}

template <>
AccumulateKernels<float, Bf16> kernels_of<AccumulateKernels<float, Bf16>, kInstructionSet>() {
  return {.add = add<float, Bf16>};
}
template <>
AccumulateKernels<float, float> kernels_of<AccumulateKernels<float, float>, kInstructionSet>() {
  return {.add = add<float, float>};
}
template <>
AccumulateKernels<double, double> kernels_of<AccumulateKernels<double, double>, kInstructionSet>() {
  return {.add = add<double, double>};
}

}  // namespace layline::trainer::kernels::simd
