#include "layline/trainer/kernels/simd/exp.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename A>
Vector<A> sigmoid(Vector<A> x) {
  return 1 / (1 + exp<A>(-x));
}

template <typename T>
[[gnu::flatten]] void forward(const T* gate_up, int64_t num_rows, int64_t feed_forward, T* y) {
  using A = Arithmetic<T>;
  for (int64_t row = 0; row < num_rows; ++row, gate_up += 2 * feed_forward, y += feed_forward) {
    for_each_vector<A>(feed_forward, [&](int64_t i, auto count, int) {
      const Vector<A> gate = load<A>(gate_up + i, count);
      const Vector<A> up = load<A>(gate_up + feed_forward + i, count);
      store<A>(y + i, gate * sigmoid<A>(gate) * up, count);
    });
  }
}

// d silu(g) / dg = s + g · s · (1 - s) with s = sigmoid(g).
template <typename T>
[[gnu::flatten]] void backward(const T* dy, const T* gate_up, int64_t num_rows, int64_t feed_forward, T* dgate_up) {
  using A = Arithmetic<T>;
  for (int64_t row = 0; row < num_rows; ++row) {
    for_each_vector<A>(feed_forward, [&](int64_t i, auto count, int) {
      const Vector<A> gradient = load<A>(dy + i, count);
      const Vector<A> gate = load<A>(gate_up + i, count);
      const Vector<A> up = load<A>(gate_up + feed_forward + i, count);
      const Vector<A> s = sigmoid<A>(gate);
      const Vector<A> silu = gate * s;
      store<A>(dgate_up + i, gradient * up * (s + silu * (1 - s)), count);
      store<A>(dgate_up + feed_forward + i, gradient * silu, count);
    });
    dy += feed_forward;
    gate_up += 2 * feed_forward;
    dgate_up += 2 * feed_forward;
  }
}

template <typename T>
constexpr SwigluKernels<T> kKernels = {.forward = forward<T>, .backward = backward<T>};

}  // namespace

template <>
SwigluKernels<Bf16> kernels_of<SwigluKernels<Bf16>, kInstructionSet>() {
  return kKernels<Bf16>;
}
template <>
SwigluKernels<float> kernels_of<SwigluKernels<float>, kInstructionSet>() {
  return kKernels<float>;
}
template <>
SwigluKernels<double> kernels_of<SwigluKernels<double>, kInstructionSet>() {
  return kKernels<double>;
}

}  // namespace layline::trainer::kernels::simd
