#include <cmath>

#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename T>
[[gnu::flatten]] void apply(const T* x, const Arithmetic<T>* rstd, const T* weight, int64_t num_rows, int64_t hidden,
                            T* y) {
  using A = Arithmetic<T>;
  for (int64_t row = 0; row < num_rows; ++row, x += hidden, y += hidden) {
    const Vector<A> factor = broadcast(rstd[row]);
    for_each_vector<A>(hidden, [&](int64_t i, auto count, int) {
      store<A>(y + i, load<A>(x + i, count) * factor * load<A>(weight + i, count), count);
    });
  }
}

template <typename T>
[[gnu::flatten]] void forward(const T* x, const T* weight, double epsilon, int64_t num_rows, int64_t hidden, T* y,
                              Arithmetic<T>* rstd) {
  using A = Arithmetic<T>;
  for (int64_t row = 0; row < num_rows; ++row) {
    const T* x_row = x + row * hidden;
    Accumulator<A> squares;
    for_each_vector<A>(hidden, [&](int64_t i, auto count, int slot) {
      const Vector<A> value = load<A>(x_row + i, count);
      squares.slots[slot] += value * value;
    });
    rstd[row] = 1 / std::sqrt(squares.sum() / static_cast<A>(hidden) + static_cast<A>(epsilon));
    apply<T>(x_row, rstd + row, weight, 1, hidden, y + row * hidden);
  }
}

// With g = dy · weight: dx = rstd · g - x · rstd³ · mean(g · x), dweight = sum over rows of dy · x · rstd.
template <typename T, bool HasResidual>
[[gnu::flatten]] void backward_rows(const T* dy, const T* x, const Arithmetic<T>* rstd, const T* weight,
                                    const T* residual, int64_t num_rows, int64_t hidden, T* dx,
                                    Arithmetic<T>* dweight) {
  using A = Arithmetic<T>;
  for (int64_t row = 0; row < num_rows; ++row) {
    const Vector<A> factor = broadcast(rstd[row]);
    Accumulator<A> products;
    for_each_vector<A>(hidden, [&](int64_t i, auto count, int slot) {
      const Vector<A> product = load<A>(dy + i, count) * load<A>(x + i, count);
      products.slots[slot] += product * load<A>(weight + i, count);
      store<A>(dweight + i, load<A>(dweight + i, count) + product * factor, count);
    });
    const A mean = products.sum() / static_cast<A>(hidden);
    const Vector<A> along_x = broadcast(mean * rstd[row] * rstd[row] * rstd[row]);
    for_each_vector<A>(hidden, [&](int64_t i, auto count, int) {
      Vector<A> gradient = load<A>(dy + i, count) * load<A>(weight + i, count) * factor;
      gradient -= load<A>(x + i, count) * along_x;
      if constexpr (HasResidual) gradient += load<A>(residual + i, count);
      store<A>(dx + i, gradient, count);
    });
    dy += hidden;
    x += hidden;
    dx += hidden;
    if constexpr (HasResidual) residual += hidden;
  }
}

template <typename T>
void backward(const T* dy, const T* x, const Arithmetic<T>* rstd, const T* weight, const T* residual, int64_t num_rows,
              int64_t hidden, T* dx, Arithmetic<T>* dweight) {
  if (residual != nullptr) {
    backward_rows<T, true>(dy, x, rstd, weight, residual, num_rows, hidden, dx, dweight);
  } else {
    backward_rows<T, false>(dy, x, rstd, weight, residual, num_rows, hidden, dx, dweight);
  }
}

template <typename T>
constexpr RmsNormKernels<T> kKernels = {.forward = forward<T>, .apply = apply<T>, .backward = backward<T>};

}  // namespace

template <>
RmsNormKernels<Bf16> kernels_of<RmsNormKernels<Bf16>, kInstructionSet>() {
  return kKernels<Bf16>;
}
template <>
RmsNormKernels<float> kernels_of<RmsNormKernels<float>, kInstructionSet>() {
  return kKernels<float>;
}
template <>
RmsNormKernels<double> kernels_of<RmsNormKernels<double>, kInstructionSet>() {
  return kKernels<double>;
}

}  // namespace layline::trainer::kernels::simd
