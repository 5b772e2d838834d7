#include "layline/trainer/convert/cast.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace layline::trainer::convert {
namespace {

using formats::TensorType;

struct Bf16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

constexpr uint32_t kInfinity = 0x7f800000, kQuietNan = 0x7fc00000;

double widen(double value) { return value; }
double widen(float value) { return value; }
double widen(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16U); }

double widen(F16 value) {
  constexpr int kLeastExponent = -24, kBias = 25;
  const int exponent = (value.bits >> 10U) & 0x1f, fraction = value.bits & 0x3ff;
  const double sign = (value.bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == 0x1f) {
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, kLeastExponent);
  return sign * std::ldexp(fraction + 0x400, exponent - kBias);
}

// The float beside `value` whose last bit is odd, unless `value` is a float: rounding it further is then as rounding
// `value` at once (Boldo and Melquiond 2008), for types that have two bits less.
float to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(value) || static_cast<double>(nearest) == value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  // Toward zero first: the magnitude of a float grows with its bits.
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

void narrow(double value, double& out) { out = value; }
void narrow(double value, float& out) { out = static_cast<float>(value); }

void narrow(double value, Bf16& out) {
  const auto bits = std::bit_cast<uint32_t>(to_odd(value));
  if ((bits & ~0x80000000U) > kInfinity) {
    out.bits = static_cast<uint16_t>((bits | kQuietNan) >> 16U);
    return;
  }
  out.bits = static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

void narrow(double value, F16& out) {
  constexpr int kMantissaBits = 10, kLeastExponent = -14, kMostExponent = 15;
  const uint32_t sign = std::signbit(value) ? 0x8000U : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) {
    out.bits = static_cast<uint16_t>(sign | 0x7e00U);
    return;
  }
  int exponent = std::isinf(value) || magnitude == 0 ? kLeastExponent : std::ilogb(magnitude);
  exponent = std::max(exponent, kLeastExponent);
  // nearbyint is to the nearest, ties to even; scaling by a power of two is exact.
  const double steps = std::nearbyint(std::ldexp(magnitude, kMantissaBits - exponent));
  if (std::isinf(value) || std::ldexp(steps, exponent - kMantissaBits) >= std::ldexp(1, kMostExponent + 1)) {
    out.bits = static_cast<uint16_t>(sign | 0x7c00U);
    return;
  }
  const auto offset = static_cast<uint32_t>(exponent - kLeastExponent) << static_cast<uint32_t>(kMantissaBits);
  out.bits = static_cast<uint16_t>(sign | (offset + static_cast<uint32_t>(steps)));
}

template <typename From, typename To>
void cast_all(std::span<const std::byte> from, std::span<std::byte> to) {
  const size_t count = from.size() / sizeof(From);
  for (size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof(From));
    To result;
    narrow(widen(value), result);
    std::memcpy(to.data() + i * sizeof(To), &result, sizeof(To));
  }
}

template <typename Visit>
void with_type(TensorType type, const Visit& visit) {
  switch (type) {
    case TensorType::kF64:
      return visit(double{});
    case TensorType::kF32:
      return visit(float{});
    case TensorType::kBf16:
      return visit(Bf16{});
    default:
      assert(type == TensorType::kF16);
      return visit(F16{});
  }
}

}  // namespace

bool is_float(TensorType type) {
  return type == TensorType::kF64 || type == TensorType::kF32 || type == TensorType::kBf16 || type == TensorType::kF16;
}

void cast(std::span<const std::byte> from, TensorType from_type, std::span<std::byte> to, TensorType to_type) {
  assert(is_float(from_type) && is_float(to_type));
  if (from_type == to_type) {
    std::memcpy(to.data(), from.data(), from.size());
    return;
  }
  with_type(from_type, [&](auto source) {
    with_type(to_type, [&](auto target) { cast_all<decltype(source), decltype(target)>(from, to); });
  });
}

}  // namespace layline::trainer::convert
