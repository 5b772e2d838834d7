// How long a step's pipeline takes, from the times of its groups of stages: O(kinds of stages).
#pragma once

#include <cstdint>

#include "layline/spec/types.h"

namespace layline::cost {

// Sums and maxima over the ranks of a pipeline, for one micro-batch and all chunks of a rank. A rank's send and receive
// times are inside its forward and backward.
struct PipelineTimes {
  double sum = 0;                  // Σ (forward + backward)
  double slowest = 0;              // max (forward + backward)
  double slowest_forward = 0;
  double slowest_backward = 0;
  double slowest_weight = 0;       // weight gradients of the slowest rank (zero bubble)
};

// Seconds from the first forward to the last backward of `micro_batches` micro-batches.
//   1F1B         Σ + (m−1)·max        (Narayanan et al. 2021, section 2.2.1, with unequal stages)
//   interleaved  m·max + (Σ − max)/v  (section 2.2.2)
//   GPipe        Σ + (m−1)·(max F + max B)
//   ZB-H1        m·max + Σ − max − (p−1)·W, never below m·max  (Qi et al. 2024, section 2.2)
double pipeline_seconds(spec::ScheduleKind schedule, int64_t pp, int64_t vp, int64_t micro_batches,
                        const PipelineTimes& times);

}  // namespace layline::cost
