// How long a schedule takes, in closed form: from the first forward to the last backward of a step. The cost does not
// grow with micro-batches, nor with stages where neighbours are alike, so searches can call it millions of times.
//
//   const StageRun runs[] = {{first_stage}, {middle_stage, pp - 2}, {last_stage}};
//   Makespan span = makespan(ScheduleKind::kOneFOneB, {.pp = pp, .micro_batches = m}, runs, {.seconds = c});
//
// Where `exact` is said it is what simulate() gives for make_schedule()'s lists; elsewhere the bounds hold what
// simulate() gives. Both are checked against the simulation by properties. docs/model.md has them as S2 to S6.
//
// With F, B the forward and backward seconds of a stage, T = F + B, W the weight part of B, p stages, m micro-batches,
// c the seconds of a message beside the computation:
//   GPipe         ΣF + ΣB + (m − 1)(max F + max B) + 2(p − 1)c: two flow shops, one after the other; always exact
//   1F1B          c = 0: the longest path through the lists (see one_f_one_b.h), exact for any stages;
//                 equal stages: (m + p − 1)T + 2c(p − 1 + (m − 1) − ⌈(m − 1)/p⌉), exact; m ≤ p: exact; else bounds.
//                 The usual ΣT + (m − 1)·max T is no bound: one stage may be slowest forward and another backward
//   interleaved   equal stages and c = 0: (max(m, p)·v + min(m, p) − 1)·T, T of one chunk (Narayanan et al. 2021,
//   section
//                 2.2.2, has it for m a multiple of p), exact; else bounds
//   zero bubble   equal stages, c = 0, m ≥ p and min(F, W) ≤ B − W: mT + (p − 1)·max(F + B − 2W, B − W) (Qi et al.
//   2024,
//                 table 1: (p − 1)(F + B_input − W)), exact; else bounds, from 1F1B's
// Messages that keep their sender busy (Transfers::kExposed) are the same as c more seconds in what is sent.
#pragma once

#include <cstdint>
#include <span>

#include "layline/schedule/simulate.h"

namespace layline::schedule {

// Neighbouring virtual stages that take the same time.
struct StageRun {
  StageTime time;
  int64_t num_stages = 1;
};

struct Makespan {
  double lower_seconds = 0;
  double upper_seconds = 0;
  double estimate_seconds = 0;  // between the bounds: what to price with
  bool exact = false;           // then all three are the same
};

// `runs` hold pp·vp virtual stages in model order. Transfers kOverlapped and kExposed only: rendezvous is simulated.
// O(runs); where it is not exact, interleaved and zero bubble O(pp·vp); 1F1B and zero bubble with m ≤ pp O(pp·m).
Makespan makespan(ScheduleKind kind, const PipelineShape& shape, std::span<const StageRun> runs,
                  const Transfer& transfer = {});
Makespan makespan(ScheduleKind kind, const PipelineShape& shape, const StageTimes& times,
                  const Transfer& transfer = {});

}  // namespace layline::schedule
