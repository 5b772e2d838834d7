// The operations of a group of ranks.
#pragma once

#include <ATen/core/ScalarType.h>

#include <string_view>

#include "layline/trainer/comm/group_factory.h"
#include "layline/trainer/measure/operation.h"

namespace layline::trainer::measure {

// Among neighbours, group_size at a time. Empty (no run) when `what` is none. bytes: of the whole tensor.
Operation make_collective(std::string_view what, at::ScalarType dtype, int64_t group_size, int64_t bytes,
                          comm::GroupFactory& factory);

}  // namespace layline::trainer::measure
