// Runs a schedule's lists on a clock: when each rank computes, waits, and holds how many activations.
//
//   StageTimes times = equal_stages(4, {.forward = 1, .backward = 2});
//   Timeline line = simulate(make_schedule(kind, shape), times, {.seconds = 0.1, .mode = Transfers::kOverlapped});
//   line.makespan_seconds; line.ranks[0].idle_seconds;
//
// Cost: one visit an instruction. Closed forms of the makespan are in makespan.h.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "layline/schedule/schedule.h"

namespace layline::schedule {

// Of one virtual stage and micro-batch, seconds.
struct StageTime {
  double forward = 0;
  double backward = 0;  // both gradients
  double weight = 0;    // the part of `backward` that is the weight gradient; only split backwards look at it
  double input() const { return backward - weight; }
};
using StageTimes = std::vector<StageTime>;  // one for each virtual stage, in model order

inline StageTimes equal_stages(int64_t num_virtual_stages, const StageTime& time) {
  return StageTimes(static_cast<size_t>(num_virtual_stages), time);
}

enum class Transfers {
  kOverlapped,  // a message takes `seconds` beside the computation of both ranks
  kExposed,     // a send keeps its rank busy for `seconds`; then the message is there
  kGrouped,     // messages between two computations start when both ranks have posted them, all at once, and each rank
                // goes on when its own are through
  kBlocking,    // one after the other: both ranks are busy for `seconds` from when the later one has come; wants lists
                // with PipelineShape::blocking_order
};

struct Transfer {
  double seconds = 0;  // of one message between neighbouring stages
  Transfers mode = Transfers::kOverlapped;
};

struct TimedInstruction {
  Instruction instruction;
  double start_seconds = 0, end_seconds = 0;  // of a message: from when the rank turned to it to when it went on
};

struct RankTimeline {
  std::vector<TimedInstruction> steps;  // as in the list
  double compute_seconds = 0;
  double idle_seconds = 0;       // of the makespan, all but computing: bubbles and transfers
  int64_t peak_activations = 0;  // micro-batches × chunks, as peak_activations() in check.h
};

struct Timeline {
  int64_t pp = 1, vp = 1;
  double makespan_seconds = 0;
  std::vector<RankTimeline> ranks;
  // Share of pp · makespan in which ranks do not compute.
  double bubble_fraction() const;
};

// The lists must be right (check.h); a deadlock is an assert. `times` has pp·vp entries.
Timeline simulate(const Schedule& schedule, const StageTimes& times, const Transfer& transfer = {});

// When the number of activations a rank holds changes, and to what, from its start of the forward to the end of the
// backward (the weight gradient where it is split).
std::vector<std::pair<double, int64_t>> activations_over_time(const RankTimeline& rank);

}  // namespace layline::schedule
