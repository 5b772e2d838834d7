#include "layline/trainer/kernels/simd/exp.h"

namespace layline::trainer::kernels::simd {
namespace {

constexpr auto kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
[[gnu::flatten]] Arithmetic<T> max(const T* logits, int64_t num_valid) {
  using A = Arithmetic<T>;
  Vector<A> slots[kSlots];
  for (Vector<A>& slot : slots) slot = broadcast(static_cast<A>(-kInfinity));
  const int64_t num_whole = num_valid - num_valid % kLanes<A>;
  for_each_vector<A>(num_whole, [&](int64_t i, auto count, int slot) {
    slots[slot] = maximum(load<A>(logits + i, count), slots[slot]);
  });
  const Vector<A> all = maximum(maximum(slots[0], slots[1]), maximum(slots[2], slots[3]));
  A result = all[0];
  for (int lane = 1; lane < kLanes<A>; ++lane) result = all[lane] > result ? all[lane] : result;
  for (int64_t i = num_whole; i < num_valid; ++i) {
    const A value = load_one(logits + i);
    result = value > result ? value : result;
  }
  return result;
}

template <typename T>
[[gnu::flatten]] Arithmetic<T> sum_exp(const T* logits, int64_t num_valid, Arithmetic<T> max) {
  using A = Arithmetic<T>;
  Accumulator<A> sums;
  const int64_t num_whole = num_valid - num_valid % kLanes<A>;
  for_each_vector<A>(num_whole, [&](int64_t i, auto count, int slot) {
    sums.slots[slot] += exp<A>(load<A>(logits + i, count) - max);
  });
  A result = sums.sum();
  if (num_whole < num_valid) {
    const int num_left = static_cast<int>(num_valid - num_whole);
    const Vector<A> last = exp<A>(load<A>(logits + num_whole, Partial{num_left}) - max);
    for (int lane = 0; lane < num_left; ++lane) result += last[lane];
  }
  return result;
}

template <typename T>
[[gnu::flatten]] void scaled_softmax(T* logits, int64_t num_valid, Arithmetic<T> max, Arithmetic<T> sum_exp,
                                     Arithmetic<T> scale) {
  using A = Arithmetic<T>;
  const A factor = scale / sum_exp;
  for_each_vector<A>(num_valid, [&](int64_t i, auto count, int) {
    store<A>(logits + i, exp<A>(load<A>(logits + i, count) - max) * factor, count);
  });
}

template <typename T>
Arithmetic<T> load_logit(const T* logit) {
  return load_one(logit);
}

template <typename T>
void store_logit(T* logit, Arithmetic<T> value) {
  store_one(logit, value);
}

template <typename T>
constexpr CrossEntropyKernels<T> kKernels = {.max = max<T>,
                                             .sum_exp = sum_exp<T>,
                                             .scaled_softmax = scaled_softmax<T>,
                                             .load = load_logit<T>,
                                             .store = store_logit<T>};

}  // namespace

template <>
CrossEntropyKernels<Bf16> kernels_of<CrossEntropyKernels<Bf16>, kInstructionSet>() {
  return kKernels<Bf16>;
}
template <>
CrossEntropyKernels<float> kernels_of<CrossEntropyKernels<float>, kInstructionSet>() {
  return kKernels<float>;
}
template <>
CrossEntropyKernels<double> kernels_of<CrossEntropyKernels<double>, kInstructionSet>() {
  return kKernels<double>;
}

}  // namespace layline::trainer::kernels::simd
