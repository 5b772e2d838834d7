// The exponential function on vectors, to about one unit in the last place.
#pragma once

#include <array>

#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename A>
struct ExpConstants;

template <>
struct ExpConstants<float> {
  static constexpr float kLog2E = 1.44269504088896341F;
  static constexpr float kLn2High = 0.693359375F;  // few bits: its multiples by whole numbers are exact
  static constexpr float kLn2Low = -2.12194440e-4F;
  static constexpr float kRound = 12582912.0F;  // 1.5 · 2^23: adding it rounds to a whole number, in the low bits
  static constexpr int kMantissaBits = 23;
  static constexpr float kSmallest = -87.33654F;  // the results below have no normal number
  static constexpr float kLargest = 88.37626F;    // 2^127.5
  static constexpr float kInfinite = 89.0F;
  static constexpr int kTerms = 8;  // of Taylor's series up to ln(2) / 2
};

template <>
struct ExpConstants<double> {
  static constexpr double kLog2E = 1.44269504088896340736;
  static constexpr double kLn2High = 0.693145751953125;
  static constexpr double kLn2Low = 1.42860682030941723212e-6;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 · 2^52
  static constexpr int kMantissaBits = 52;
  static constexpr double kSmallest = -708.396418532264;
  static constexpr double kLargest = 709.0;
  static constexpr double kInfinite = 710.0;
  static constexpr int kTerms = 14;
};

// 1 / k!
template <typename A, int NumTerms>
constexpr std::array<A, NumTerms> taylor_coefficients() {
  std::array<A, NumTerms> coefficients{};
  double factorial = 1;
  for (int k = 0; k < NumTerms; ++k) {
    if (k > 1) factorial *= k;
    coefficients[k] = static_cast<A>(1 / factorial);
  }
  return coefficients;
}

// exp(x) = 2^n · exp(r) with n whole and |r| <= ln(2) / 2.
template <typename A>
struct Reduced {
  Vector<A> n, r;
  Vector<A> shifted;  // n + kRound
};

template <typename A>
Reduced<A> reduce(Vector<A> x) {
  using C = ExpConstants<A>;
  const Vector<A> shifted = x * C::kLog2E + C::kRound;
  const Vector<A> n = shifted - C::kRound;
  return {.n = n, .r = (x - n * C::kLn2High) - n * C::kLn2Low, .shifted = shifted};
}

// exp(r) for |r| <= ln(2) / 2.
template <typename A>
Vector<A> series(Vector<A> r) {
  constexpr int kTerms = ExpConstants<A>::kTerms;
  constexpr auto kCoefficients = taylor_coefficients<A, kTerms>();
  Vector<A> sum = broadcast(kCoefficients[kTerms - 1]);
#pragma GCC unroll 16
  for (int k = kTerms - 2; k >= 0; --k) sum = sum * r + kCoefficients[k];
  return sum;
}

// 0 and infinity where the result is too small or too large for a normal number; an x that is not a number stays so.
#if defined(__AVX512F__)
template <typename A>
Vector<A> exp(Vector<A> x) {
  using C = ExpConstants<A>;
  const Reduced<A> reduced = reduce<A>(minimum(broadcast(C::kInfinite), x));
  const Vector<A> sum = series<A>(reduced.r);
  if constexpr (std::is_same_v<A, float>) {
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, broadcast(C::kSmallest), _CMP_NLT_UQ), sum, reduced.n);
  } else {
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, broadcast(C::kSmallest), _CMP_NLT_UQ), sum, reduced.n);
  }
}
#else
template <typename A>
Vector<A> exp(Vector<A> x) {
  using C = ExpConstants<A>;
  const Reduced<A> reduced = reduce<A>(x);
  const BitsVector<A> power = std::bit_cast<BitsVector<A> >(reduced.shifted) << C::kMantissaBits;
  auto result = std::bit_cast<Vector<A> >(std::bit_cast<BitsVector<A> >(series<A>(reduced.r)) + power);
  result = x < C::kSmallest ? Vector<A>{} : result;
  result = x > C::kLargest ? broadcast(std::numeric_limits<A>::infinity()) : result;
  return x == x ? result : x;
}
#endif

}  // namespace
}  // namespace layline::trainer::kernels::simd
