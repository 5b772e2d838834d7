// Parts of parameters within a range of a bucket.
#pragma once

#include <algorithm>
#include <cstdint>

#include "layline/trainer/optimizer/flat_buffers.h"

namespace layline::trainer::optimizer {

struct Segment {
  model::Parameter* parameter = nullptr;
  int64_t in_parameter = 0;  // element of the flat local parameter at which it begins
  int64_t in_range = 0;      // element of the range
  int64_t length = 0;
};

// The parts of the bucket's parameters in [first, first + length), in order.
template <typename Visit>
void for_each_segment(const Bucket& bucket, int64_t first, int64_t length, const Visit& visit) {
  for (const PlacedParameter& placed : bucket.parameters) {
    const int64_t begin = std::max(placed.offset, first);
    const int64_t end = std::min(placed.offset + placed.parameter->num_local(), first + length);
    if (begin < end) visit(Segment{placed.parameter, begin - placed.offset, begin - first, end - begin});
  }
}

}  // namespace layline::trainer::optimizer
