// Where weights come from: drawn, or read.
#pragma once

#include <cstdint>

#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

// Draws the parameter's slice of a weight that depends on (seed, global name) only, so that every layout starts from
// the same model: each row of the whole weight has a generator of its own, and the rank draws the rows that it holds,
// whole. Normal with initial_std, in fp32, then rounded; ones where initial_std is 0; zero in padding.
void initialize(Parameter& parameter, uint64_t seed);

}  // namespace layline::trainer::model
