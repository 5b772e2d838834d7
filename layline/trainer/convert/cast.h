// Floating-point numbers of one type as another.
#pragma once

#include <cstddef>
#include <span>

#include "layline/trainer/formats/safetensors_header.h"

namespace layline::trainer::convert {

// F64, F32, BF16 and F16.
bool is_float(formats::TensorType type);

// As many numbers as `from` has, of any alignment. Each is rounded once, to the nearest, ties to even; what is too
// large becomes infinite, NaN stays NaN.
void cast(std::span<const std::byte> from, formats::TensorType from_type, std::span<std::byte> to,
          formats::TensorType to_type);

}  // namespace layline::trainer::convert
