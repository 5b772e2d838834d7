// Runs what a sweep asks for, one after the other, and records each when it is done.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layline/sweep/launcher.h"
#include "layline/sweep/planned_run.h"
#include "layline/sweep/recorder.h"
#include "layline/sweep/sweep_spec.h"

namespace layline::sweep {

struct SweepState {
  int64_t num_planned = 0;  // repeats count
  int64_t num_illegal = 0;
  std::vector<SweptRun> done;  // in the order in which they were
  std::optional<size_t> best;  // index of the run with the most tokens a second
  int interrupt_signal = 0;    // 0: all runs are done
};

// What is told while it goes on. May be empty.
struct SweepObserver {
  std::function<void(const SweepState&, const PlannedRun& next)> starting;
  std::function<void(const SweepState&)> finished;  // the last of done
};

// Appends a record to `output` (runs::RunAppender with prediction columns) for every run that is not there yet; a
// restart after any end, also a power failure, repeats at most the run that was going on. Scratch files lie beside
// it, in `output`.running, while this runs. `machine` tells machines apart whose times may not be mixed. Throws
// base::InputError when nothing is legal, or when the output is something else, of another sweep or another machine;
// base::RunError when the disk fails. An interrupt ends it, and interrupt_signal says which.
SweepState run_sweep(const SweepSpec& spec, const std::string& output, const std::string& machine, Launcher& launcher,
                     const SweepObserver& observer);

}  // namespace layline::sweep
