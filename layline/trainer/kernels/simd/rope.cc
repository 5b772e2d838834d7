#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename T>
[[gnu::flatten]] void rotate(T* heads, const Arithmetic<T>* cos, const Arithmetic<T>* sin, int64_t num_heads,
                             int64_t head_stride, int64_t half_head_size, bool inverse) {
  using A = Arithmetic<T>;
  const Vector<A> sign = broadcast<A>(inverse ? -1 : 1);
  for (int64_t head = 0; head < num_heads; ++head) {
    T* first = heads + head * head_stride;
    T* second = first + half_head_size;
    for_each_vector<A>(half_head_size, [&](int64_t i, auto count, int) {
      const Vector<A> a = load<A>(first + i, count);
      const Vector<A> b = load<A>(second + i, count);
      const Vector<A> c = load<A>(cos + i, count);
      const Vector<A> s = load<A>(sin + i, count) * sign;
      store<A>(first + i, a * c - b * s, count);
      store<A>(second + i, b * c + a * s, count);
    });
  }
}

}  // namespace

template <>
RopeKernels<Bf16> kernels_of<RopeKernels<Bf16>, kInstructionSet>() {
  return {.rotate = rotate<Bf16>};
}
template <>
RopeKernels<float> kernels_of<RopeKernels<float>, kInstructionSet>() {
  return {.rotate = rotate<float>};
}
template <>
RopeKernels<double> kernels_of<RopeKernels<double>, kInstructionSet>() {
  return {.rotate = rotate<double>};
}

}  // namespace layline::trainer::kernels::simd
