// One layout, run for real: what came of it, and how fast it was.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layline/runs/run_record.h"
#include "layline/sweep/launcher.h"
#include "layline/trainer/config/run_config.h"

namespace layline::sweep {

struct MeasureOptions {
  std::string scratch_folder = {};  // for RUN.json and metrics; must be there
  double time_limit_seconds = 600;
  // Stops a run whose fastest step so far is slower than this.
  std::optional<double> hopeless_step_seconds = std::nullopt;
};

struct Measurement {
  runs::RunStatus status = runs::RunStatus::kFail;
  int interrupt_signal = 0;  // the user wants to stop, and nothing was measured
  bool is_given_up = false;  // hopeless; status is timeout
  std::string reason;        // one line; empty when status is ok
  int64_t num_steps = 0;     // that were done
  // Of a step, over all but the first where there are more than two; also of runs that were given up.
  std::optional<double> step_seconds;  // the median
  std::optional<double> fastest_step_seconds;
  std::optional<double> spread;             // (third quartile - first) / median
  std::optional<double> tokens_per_second;  // of all ranks, from the median
  std::optional<double> mfu;                // the median
  int64_t peak_memory_bytes = 0;            // 0: not known
  std::vector<int64_t> peak_memory_bytes_by_stage;
  std::vector<std::map<std::string, double>> seconds_by_stage;  // medians, by the trainer's names
  double wall_seconds = 0;
};

// Runs `run`, whose layout is written, on so many ranks. Throws base::RunError when the scratch folder cannot be
// written or nothing can be started; whatever the run itself does is a Measurement.
Measurement measure(trainer::config::RunConfig run, int64_t num_ranks, Launcher& launcher,
                    const MeasureOptions& options);

}  // namespace layline::sweep
