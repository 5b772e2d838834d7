// Finds the fastest layout of a run in as few measured ones as it takes: Tuner on real runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layline/sweep/launcher.h"
#include "layline/sweep/planned_run.h"
#include "layline/sweep/recorder.h"
#include "layline/trainer/config/run_config.h"

namespace layline::sweep {

struct TuneRequest {
  trainer::config::RunConfig run;  // its layout, weights, metrics and checkpoints are not used
  int64_t num_ranks = 1;
  int64_t max_trials = 10;
  double max_seconds = 3600;        // no trial starts after it
  int64_t steps = 5;                // of a trial, at most
  double time_limit_seconds = 600;  // of a trial
  double stop_when_slower_than_best_by = 2;
  double confidence = 0.95;
  double tolerance = 0.01;
};

struct TuneTrial {
  SweptRun run;
  double expected_seconds = 0;    // a step, as believed when it was chosen
  double relative_deviation = 0;  // of that
  double fit_probability = 0;     // likewise
  double confidence_after = 0;    // that nothing untried is faster by more than the tolerance
  double wall_seconds = 0;
};

enum class TuneEnd { kProven, kTrials, kTime, kNothingLeft, kInterrupted };

struct TuneState {
  int64_t num_layouts = 0;     // legal ones
  int64_t num_likely_fit = 0;  // of those, before anything was measured
  std::vector<TuneTrial> trials;
  std::optional<size_t> best;  // of the trials
  double confidence = 0;
  TuneEnd end = TuneEnd::kProven;
  int interrupt_signal = 0;
  double spent_seconds = 0;  // in trials, also earlier ones
  // What measuring every layout that likely fits would take, tried ones included; 0 while nothing ran.
  double sweep_seconds = 0;
};

struct TuneObserver {
  std::function<void(const TuneState&, const PlannedRun& next)> starting;
  std::function<void(const TuneState&)> finished;  // the last of the trials
};

// Trials are appended to `output` as run_sweep() does; those that it has of the same run count as made now, so that
// the same call goes on where an earlier one ended, whatever ended it. Throws as run_sweep() does.
TuneState tune(const TuneRequest& request, const std::string& output, const std::string& machine, Launcher& launcher,
               const TuneObserver& observer);

}  // namespace layline::sweep
