// Tuning on recorded sweeps, where a trial is a look at the record: how many would have been needed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layline/runs/run_record.h"

namespace layline::sweep {

struct ReplayOptions {
  std::string engine = "";  // replaces the engine column when not empty
  int64_t max_trials = 10;  // in each sweep
  double confidence = 0.95;
  double tolerance = 0.01;
  std::function<void(size_t done, size_t total)> progress = {};  // sweeps refitted; may be empty
};

struct Trial {
  std::string layout;
  double predicted_step_seconds = 0;  // as believed when it was chosen, with what earlier trials taught
  double planned_step_seconds = 0;    // as predicted before the first trial
  double fit_probability = 0;         // as believed when it was chosen
  runs::RunStatus status = runs::RunStatus::kOk;
  std::optional<double> step_seconds;  // the median of its repeats, when it ran
  std::optional<double> regret_after;  // best so far / best of the sweep - 1; none while nothing ran
  double confidence_after = 0;         // that nothing untried is faster by more than the tolerance
};

struct SweepReplay {
  std::string sweep;
  int64_t num_layouts = 0;  // that differ
  int64_t num_ran = 0;
  double best_seconds = 0;  // in the records
  std::vector<Trial> trials;
  std::string best_layout;                         // that was found; "" when none ran
  bool is_proven = false;                          // to the confidence asked for, before trials ended
  std::optional<int64_t> trials_within_tolerance;  // trials until the regret was within it
  double sweep_gpu_seconds = 0;                    // step seconds × GPUs: of every layout that ran, once
  double tuned_gpu_seconds = 0;                    // of those tried
};

// One a sweep with at least one layout that ran. Every sweep is predicted by a fit to the others, or by a shipped
// calibration that has not seen it.
std::vector<SweepReplay> replay(const std::vector<runs::RunTable>& tables, const ReplayOptions& options);

}  // namespace layline::sweep
