#include "layline/trainer/convert/cast.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace layline::trainer::convert {
namespace {

using formats::TensorType;

template <typename To, typename From>
To cast_one(From value, TensorType from_type, TensorType to_type) {
  To result{};
  cast(std::as_bytes(std::span(&value, 1)), from_type, std::as_writable_bytes(std::span(&result, 1)), to_type);
  return result;
}

uint16_t bf16_of(double value) { return cast_one<uint16_t>(value, TensorType::kF64, TensorType::kBf16); }
uint16_t f16_of(double value) { return cast_one<uint16_t>(value, TensorType::kF64, TensorType::kF16); }
double of_bf16(uint16_t bits) { return cast_one<double>(bits, TensorType::kBf16, TensorType::kF64); }
double of_f16(uint16_t bits) { return cast_one<double>(bits, TensorType::kF16, TensorType::kF64); }

// Numbers between two neighbours of a type, and exactly half way, and next to that.
template <typename Widen>
double between(uint16_t bits, int place, const Widen& widen) {
  const double low = widen(bits), high = widen(static_cast<uint16_t>(bits + 1)), middle = low + (high - low) / 2;
  switch (place) {
    case 0:
      return low;
    case 1:
      return std::nextafter(middle, low);
    case 2:
      return middle;
    case 3:
      return std::nextafter(middle, high);
    default:
      return high;
  }
}

uint16_t expected(uint16_t bits, int place) {
  const auto next = static_cast<uint16_t>(bits + 1);
  if (place == 2) return bits % 2 == 0 ? bits : next;
  return place < 2 ? bits : next;
}

TEST(Cast, EveryBf16ComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<uint16_t>(bits);
    if (std::isnan(of_bf16(value))) {
      EXPECT_TRUE(std::isnan(of_bf16(bf16_of(of_bf16(value)))));
    } else {
      EXPECT_EQ(bf16_of(of_bf16(value)), value);
    }
  }
}

TEST(Cast, EveryF16ComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<uint16_t>(bits);
    if (std::isnan(of_f16(value))) {
      EXPECT_TRUE(std::isnan(of_f16(f16_of(of_f16(value)))));
    } else {
      EXPECT_EQ(f16_of(of_f16(value)), value);
    }
  }
}

TEST(Cast, RoundsOnceToTheNearestTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    for (int place = 0; place < 5; ++place) {
      const auto value = static_cast<uint16_t>(bits);
      EXPECT_EQ(bf16_of(between(value, place, of_bf16)), expected(value, place)) << bits << " at " << place;
      EXPECT_EQ(bf16_of(-between(value, place, of_bf16)), expected(value, place) | 0x8000);
    }
  }
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    for (int place = 0; place < 5; ++place) {
      const auto value = static_cast<uint16_t>(bits);
      EXPECT_EQ(f16_of(between(value, place, of_f16)), expected(value, place)) << bits << " at " << place;
      EXPECT_EQ(f16_of(-between(value, place, of_f16)), expected(value, place) | 0x8000);
    }
  }
}

TEST(Cast, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(f16_of(65504), 0x7bff);
  EXPECT_EQ(f16_of(65519.999), 0x7bff);
  EXPECT_EQ(f16_of(65520), 0x7c00);
  EXPECT_EQ(f16_of(-1e300), 0xfc00);
  EXPECT_EQ(bf16_of(1e300), 0x7f80);
  EXPECT_EQ(bf16_of(-std::numeric_limits<double>::infinity()), 0xff80);
  EXPECT_EQ(f16_of(std::numeric_limits<double>::infinity()), 0x7c00);
}

RC_GTEST_PROP(Cast, OfFloatsIsTheCompilers, (float value)) {
  RC_ASSERT(cast_one<double>(value, TensorType::kF32, TensorType::kF64) == static_cast<double>(value));
  const double wide = static_cast<double>(value) * 1.0000000123;
  RC_ASSERT(cast_one<float>(wide, TensorType::kF64, TensorType::kF32) == static_cast<float>(wide));
}

}  // namespace
}  // namespace layline::trainer::convert
