// The exact time of 1F1B with unequal stages (docs/model.md, S3).
//
// The lists are a graph of computations with two kinds of edges: the next instruction of the rank, and a message. The
// step's time is its longest path from the first forward to the last backward of rank 0. Rank i has q = min(p − i, m)
// micro-batches in flight, so a path that goes down the ranks with forwards and up with backwards, over the ranks
// a … b, comes back b − a + 1 micro-batches later. For m > p the longest path is
//   1. down to a rank b, up to a rank s ≤ b. Ranks below b are never seen by this part: the p − 1 − b micro-batches
//   that
//      it is short of are extra forwards of the warm-up, in the slowest forward on the way;
//   2. as often as micro-batches allow, m − 1 − (p − s) times, forward and backward of rank s;
//   3. down to a rank b', up to rank 0, with p − 1 − b' extra backwards of the cool-down.
// s, b and b' are free; the best b and b' for an s do not depend on each other.
#pragma once

#include <cstdint>
#include <span>

#include "layline/schedule/makespan.h"

namespace layline::schedule {

// The longest path of this kind, for m > p, with the messages of `transfer_seconds` on it: the step's time when
// messages take no time, else a lower bound (loops over several ranks may then be longer). O(runs).
double one_f_one_b_seconds(std::span<const StageRun> runs, int64_t micro_batches, double transfer_seconds = 0);

// For any m and messages of `transfer_seconds` beside the computation, by going through all computations: O(p·m).
double one_f_one_b_seconds_step_by_step(std::span<const StageRun> runs, int64_t micro_batches, double transfer_seconds);

}  // namespace layline::schedule
