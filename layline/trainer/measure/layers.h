// Whole layers, as a pipeline stage runs them.
#pragma once

#include <ATen/core/ScalarType.h>

#include <string_view>
#include <vector>

#include "layline/trainer/comm/group_factory.h"
#include "layline/trainer/measure/operation.h"

namespace layline::trainer::measure {

// A pass of one layer of machine::probe_model. Empty (no run) when `what` is none. sizes: hidden size, tokens.
Operation make_layer(std::string_view what, at::ScalarType dtype, const std::vector<double>& sizes,
                     comm::GroupFactory& factory);

}  // namespace layline::trainer::measure
