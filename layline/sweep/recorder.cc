#include "layline/sweep/recorder.h"

#include <utility>

namespace layline::sweep {

SweptRun swept_of(const PlannedRun& planned, const runs::RunRecord& record, bool is_from_before) {
  SweptRun swept;
  swept.planned = planned;
  swept.status = record.status.value_or(runs::RunStatus::kFail);
  swept.reason = runs::note(record, "reason");
  swept.is_from_before = is_from_before;
  if (swept.status != runs::RunStatus::kOk) return swept;
  swept.step_seconds = runs::step_seconds(record);
  if (swept.step_seconds) swept.tokens_per_second = planned.job->tokens_per_step() / *swept.step_seconds;
  return swept;
}

Recorder::Recorder(const std::string& output, Origin origin, Launcher& launcher)
    : origin_(std::move(origin)),
      launcher_(launcher),
      appender_(output, runs::RunAppender::Columns::kRunsAndPredictions),
      scratch_(output + ".running") {
  for (const runs::RunRecord& record : existing()) check_origin(record, origin_, output);
}

std::optional<runs::RunRecord> Recorder::run(trainer::config::RunConfig run, const PlannedRun& planned,
                                             MeasureOptions options) {
  run.layout = planned.text;
  options.scratch_folder = scratch_.folder();
  const Measurement measured = measure(std::move(run), planned.num_ranks, launcher_, options);
  interrupt_signal_ = measured.interrupt_signal;
  if (interrupt_signal_ != 0) return std::nullopt;
  runs::RunRecord record = record_of(planned, measured, origin_);
  appender_.append(record, calibrate::prediction_fields(planned.prediction));
  return record;
}

}  // namespace layline::sweep
