// Parts of parameters within a range of a bucket.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

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

// Neighbouring segments of one kind, with the gaps between them: those are zero in weights, gradients and moments, and
// stay so in sums and updates.
template <typename Kind>
struct Run {
  int64_t first = 0;  // element of the range
  int64_t length = 0;
  Kind kind{};
};

// The runs of [first, first + length), in order; kind_of(parameter) is compared by ==.
template <typename KindOf, typename Visit>
void for_each_run(const Bucket& bucket, int64_t first, int64_t length, const KindOf& kind_of, const Visit& visit) {
  using Kind = std::decay_t<decltype(kind_of(*bucket.parameters.front().parameter))>;
  std::optional<Run<Kind>> run;
  for_each_segment(bucket, first, length, [&](const Segment& segment) {
    const Kind kind = kind_of(*segment.parameter);
    if (run && run->kind == kind) {
      run->length = segment.in_range + segment.length - run->first;
      return;
    }
    if (run) visit(*run);
    run = Run<Kind>{segment.in_range, segment.length, kind};
  });
  if (run) visit(*run);
}

}  // namespace layline::trainer::optimizer
