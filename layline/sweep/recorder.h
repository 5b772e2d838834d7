// Measures runs into a file of run records, a row when each is done, and knows what the file had before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layline/runs/run_appender.h"
#include "layline/sweep/launcher.h"
#include "layline/sweep/measure.h"
#include "layline/sweep/planned_run.h"
#include "layline/sweep/record.h"
#include "layline/sweep/scratch.h"

namespace layline::sweep {

// A run with what came of it, now or before.
struct SweptRun {
  PlannedRun planned;
  runs::RunStatus status = runs::RunStatus::kFail;
  std::string reason;
  std::optional<double> step_seconds;  // of ok runs
  std::optional<double> tokens_per_second;
  bool is_from_before = false;  // it was in the file
};

SweptRun swept_of(const PlannedRun& planned, const runs::RunRecord& record, bool is_from_before);

class Recorder {
 public:
  // Scratch files lie beside the output, in `output`.running, as long as this lives. Throws as runs::RunAppender and
  // check_origin.
  Recorder(const std::string& output, Origin origin, Launcher& launcher);

  const std::vector<runs::RunRecord>& existing() const { return appender_.existing(); }

  // Runs `run` with the planned layout; its record is on disk when this returns. None when the user interrupts it:
  // interrupt_signal() says how, and nothing is recorded. Throws base::RunError when the disk fails.
  std::optional<runs::RunRecord> run(trainer::config::RunConfig run, const PlannedRun& planned, MeasureOptions options);

  int interrupt_signal() const { return interrupt_signal_; }

 private:
  Origin origin_;
  Launcher& launcher_;
  runs::RunAppender appender_;
  Scratch scratch_;
  int interrupt_signal_ = 0;
};

}  // namespace layline::sweep
