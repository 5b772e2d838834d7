// The operations of one rank: products, attention, and what is neither.
#pragma once

#include <ATen/core/ScalarType.h>

#include <string_view>
#include <vector>

#include "layline/trainer/measure/operation.h"

namespace layline::trainer::measure {

// Empty (no run) when `what` is none of these.
Operation make_product(std::string_view what, at::ScalarType dtype, const std::vector<double>& sizes);
Operation make_attention(std::string_view what, at::ScalarType dtype, const std::vector<double>& sizes);
Operation make_kernel(std::string_view what, at::ScalarType dtype, int64_t elements);

}  // namespace layline::trainer::measure
