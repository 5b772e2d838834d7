// Numbers from bytes that need not be aligned. Every file format here is little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace layline::trainer::formats {

static_assert(std::endian::native == std::endian::little, "the files are little-endian and read as they are");

// Element `index` of an array of Values that begins at `start`.
template <typename Value>
Value load_value(const std::byte* start, int64_t index = 0) {
  Value value;
  std::memcpy(&value, start + index * static_cast<int64_t>(sizeof(Value)), sizeof(Value));
  return value;
}

}  // namespace layline::trainer::formats
