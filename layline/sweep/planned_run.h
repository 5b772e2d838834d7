// The runs of a sweep, priced, in the order in which they are worth running.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layline/calibrate/predict.h"
#include "layline/layout/layout.h"
#include "layline/spec/job.h"
#include "layline/sweep/sweep_spec.h"
#include "layline/trainer/config/run_config.h"

namespace layline::sweep {

struct PlannedRun {
  int64_t num_ranks = 1;
  std::shared_ptr<const spec::Job> job;  // shared by the runs on so many ranks
  layout::Layout layout;                 // legal
  std::string text;                      // canonical
  calibrate::Prediction prediction;
};

struct SweepPlan {
  std::vector<PlannedRun> runs;
  int64_t num_illegal = 0;  // of what was asked for
};

// Every layout that is asked for and legal, once for each number of ranks: first those that likely fit, fastest first,
// then the others, likeliest first. Throws base::InputError when none is legal, with the reason for each axis or text.
SweepPlan plan_sweep(const SweepSpec& spec);

// All legal layouts of a run on so many ranks, in the same order; at most `limit`. None: the reason is thrown likewise.
std::vector<PlannedRun> plan_all(const trainer::config::RunConfig& run, int64_t num_ranks, size_t limit);

// Key of a run among those of a sweep: "2 ranks, dp2 tp1 pp1 mb4".
std::string key_of(const PlannedRun& run);

}  // namespace layline::sweep
