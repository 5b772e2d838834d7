// Vectors of the instruction set that a file is compiled for (LAYLINE_INSTRUCTION_SET), in the compiler's own vector
// types: + - * / and comparisons work on them, and a · b + c becomes one instruction where there is one.
//
//   for_each_vector<float>(n, [&](int64_t i, auto count, int slot) {
//     sum[slot] += load<float>(x + i, count) * load<float>(y + i, count);
//   });
//
// Everything is in an unnamed namespace, so that no two instruction sets share a symbol (see kernels.h). Functions that
// use it are marked gnu::flatten: all that they call is inlined.
#pragma once

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "layline/trainer/kernels/simd/kernels.h"

namespace layline::trainer::kernels::simd {
namespace {

constexpr InstructionSet kInstructionSet = InstructionSet::LAYLINE_INSTRUCTION_SET;

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <typename A>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(A));

// The vector of `NumLanes` values of a type.
template <typename T, int NumLanes>
struct VectorOf {
  using Type [[gnu::vector_size(sizeof(T) * NumLanes)]] = T;
};
template <typename A>
using Vector = typename VectorOf<A, kLanes<A>>::Type;

// The integers that share their bits with the lanes of a Vector<A>.
template <typename A>
using BitsOf = std::conditional_t<sizeof(A) == 4, uint32_t, uint64_t>;
template <typename A>
using BitsVector = typename VectorOf<BitsOf<A>, kLanes<A>>::Type;

// How many lanes of a vector there are in memory.
struct Full {};
struct Partial {
  int count;
};

template <typename A>
Vector<A> broadcast(A value) {
  return value - Vector<A>{};
}

// The bits of bf16 in the upper halves of fp32.
template <int NumLanes>
typename VectorOf<float, NumLanes>::Type widened(typename VectorOf<uint16_t, NumLanes>::Type narrow) {
  using Wide = typename VectorOf<uint32_t, NumLanes>::Type;
#if defined(__AVX512F__)
  if constexpr (NumLanes == 16) {  // masked: GCC 12 takes the unmasked one's result for uninitialized (GCC bug 105593)
    return std::bit_cast<typename VectorOf<float, NumLanes>::Type>(
        std::bit_cast<Wide>(_mm512_maskz_cvtepu16_epi32(0xffff, std::bit_cast<__m256i>(narrow))) << 16);
  }
#endif
#if defined(__AVX2__)
  if constexpr (NumLanes == 8) {
    return std::bit_cast<typename VectorOf<float, NumLanes>::Type>(
        std::bit_cast<Wide>(_mm256_cvtepu16_epi32(std::bit_cast<__m128i>(narrow))) << 16);
  }
#endif
  return std::bit_cast<typename VectorOf<float, NumLanes>::Type>(__builtin_convertvector(narrow, Wide) << 16);
}

// kLanes<A> values of T, as A.
template <typename A, typename T>
Vector<A> load(const T* from, Full = {}) {
  if constexpr (std::is_same_v<T, Bf16>) {
    typename VectorOf<uint16_t, kLanes<A>>::Type narrow;
    std::memcpy(&narrow, from, sizeof(narrow));
    return __builtin_convertvector(widened<kLanes<A>>(narrow), Vector<A>);
  } else {
    typename VectorOf<T, kLanes<A>>::Type values;
    std::memcpy(&values, from, sizeof(values));
    return __builtin_convertvector(values, Vector<A>);
  }
}

// The first `part.count` values; the other lanes are 0.
template <typename A, typename T>
Vector<A> load(const T* from, Partial part) {
  T values[kLanes<A>] = {};
  for (int i = 0; i < part.count; ++i) values[i] = from[i];
  return load<A>(values);
}

#if defined(__AVX512BF16__)
inline VectorOf<uint16_t, 16>::Type rounded_to_bf16(Vector<float> values) {
  return std::bit_cast<VectorOf<uint16_t, 16>::Type>(_mm512_cvtneps_pbh(values));
}
#else
// To nearest, ties to even; not a number stays so.
inline typename VectorOf<uint16_t, kLanes<float>>::Type rounded_to_bf16(Vector<float> values) {
  using Unsigned = typename VectorOf<uint32_t, kLanes<float>>::Type;
  const auto bits = std::bit_cast<Unsigned>(values);
  const Unsigned rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Unsigned not_a_number = Unsigned{} + 0x7fc0;
  return __builtin_convertvector(values == values ? rounded : not_a_number,
                                 typename VectorOf<uint16_t, kLanes<float>>::Type);
}
#endif

template <typename A, typename T>
void store(T* to, Vector<A> values, Full = {}) {
  if constexpr (std::is_same_v<T, Bf16>) {
    const auto narrow = rounded_to_bf16(values);
    std::memcpy(to, &narrow, sizeof(narrow));
  } else {
    std::memcpy(to, &values, sizeof(values));
  }
}

template <typename A, typename T>
void store(T* to, Vector<A> values, Partial part) {
  T whole[kLanes<A>];
  store<A>(whole, values);
  for (int i = 0; i < part.count; ++i) to[i] = whole[i];
}

// One value by the way of a vector, so that it is rounded alike.
template <typename T>
Arithmetic<T> load_one(const T* from) {
  return load<Arithmetic<T>>(from, Partial{1})[0];
}
template <typename T>
void store_one(T* to, Arithmetic<T> value) {
  store<Arithmetic<T>>(to, broadcast(value), Partial{1});
}

// Accumulators for sums that do not wait for each other.
constexpr int kSlots = 4;

// Calls body(i, count, slot) for i = 0, kLanes<A>, …; count is Full, at the end Partial if n is no multiple; slot
// counts 0 to kSlots - 1, round and round.
template <typename A, typename Body>
void for_each_vector(int64_t n, const Body& body) {
  constexpr int64_t kStep = kLanes<A>;
  int64_t i = 0;
  for (; i + kSlots * kStep <= n; i += kSlots * kStep) {
#pragma GCC unroll 4
    for (int slot = 0; slot < kSlots; ++slot) body(i + slot * kStep, Full{}, slot);
  }
  for (; i + kStep <= n; i += kStep) body(i, Full{}, 0);
  if (i < n) body(i, Partial{static_cast<int>(n - i)}, 1);
}

template <typename A>
struct Accumulator {
  Vector<A> slots[kSlots] = {};

  A sum() const {
    const Vector<A> total = (slots[0] + slots[1]) + (slots[2] + slots[3]);
    A result = 0;
    for (int i = 0; i < kLanes<A>; ++i) result += total[i];
    return result;
  }
};

// The larger and the smaller; b where one of both is not a number.
#if defined(__AVX512F__)
inline Vector<float> maximum(Vector<float> a, Vector<float> b) { return _mm512_maskz_max_ps(0xffff, a, b); }
inline Vector<double> maximum(Vector<double> a, Vector<double> b) { return _mm512_maskz_max_pd(0xff, a, b); }
inline Vector<float> minimum(Vector<float> a, Vector<float> b) { return _mm512_maskz_min_ps(0xffff, a, b); }
inline Vector<double> minimum(Vector<double> a, Vector<double> b) { return _mm512_maskz_min_pd(0xff, a, b); }
#else
template <typename V>
V maximum(V a, V b) {
  return a > b ? a : b;
}
template <typename V>
V minimum(V a, V b) {
  return a < b ? a : b;
}
#endif

}  // namespace
}  // namespace layline::trainer::kernels::simd
