// The dtypes of safetensors files as torch has them.
#pragma once

#include <c10/core/ScalarType.h>

#include "layline/trainer/formats/safetensors_header.h"

namespace layline::trainer::data {

at::ScalarType to_scalar_type(formats::TensorType type);
// Asserts that the format has it.
formats::TensorType to_tensor_type(at::ScalarType type);

}  // namespace layline::trainer::data
