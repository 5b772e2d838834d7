// Whole layers, as a pipeline stage runs them.
#pragma once

#include <ATen/core/ScalarType.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "layline/trainer/comm/group_factory.h"
#include "layline/trainer/measure/operation.h"

namespace layline::trainer::measure {

// A pass of one layer of machine::probe_model, which group_size ranks share. Empty (no run) when `what` is none. sizes:
// hidden size, tokens.
Operation make_layer(std::string_view what, at::ScalarType dtype, int64_t group_size, const std::vector<double>& sizes,
                     comm::GroupFactory& factory);

}  // namespace layline::trainer::measure
