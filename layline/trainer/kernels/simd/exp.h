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
  static constexpr float kSmallest = -87.33654F;  // below, results are 0
  static constexpr float kLargest = 88.37626F;    // above, infinite; 2^127.5
  static constexpr int kTerms = 8;                // of Taylor's series up to ln(2) / 2
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
  static constexpr int kTerms = 14;
};

// 1 / k!
template <typename A, int num_terms>
constexpr std::array<A, num_terms> taylor_coefficients() {
  std::array<A, num_terms> coefficients{};
  double factorial = 1;
  for (int k = 0; k < num_terms; ++k) {
    if (k > 1) factorial *= k;
    coefficients[k] = static_cast<A>(1 / factorial);
  }
  return coefficients;
}

// exp(x) = 2^n · exp(r) with n whole and |r| <= ln(2) / 2.
template <typename A>
Vector<A> exp(Vector<A> x) {
  using C = ExpConstants<A>;
  const Vector<A> shifted = x * C::kLog2E + C::kRound;
  const Vector<A> n = shifted - C::kRound;
  const Vector<A> r = (x - n * C::kLn2High) - n * C::kLn2Low;
  constexpr auto kCoefficients = taylor_coefficients<A, C::kTerms>();
  Vector<A> series = broadcast(kCoefficients[C::kTerms - 1]);
#pragma GCC unroll 16
  for (int k = C::kTerms - 2; k >= 0; --k) series = series * r + kCoefficients[k];
  const BitsVector<A> power = std::bit_cast<BitsVector<A>>(shifted) << C::kMantissaBits;
  Vector<A> result = std::bit_cast<Vector<A>>(std::bit_cast<BitsVector<A>>(series) + power);
  result = x < C::kSmallest ? Vector<A>{} : result;
  result = x > C::kLargest ? broadcast(std::numeric_limits<A>::infinity()) : result;
  return x == x ? result : x;
}

}  // namespace
}  // namespace layline::trainer::kernels::simd
