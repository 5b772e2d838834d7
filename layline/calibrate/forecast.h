// What is known of a sweep before any of its runs is: its runs predicted by a fit to all others, and how far the others
// lie from that same fit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layline/calibrate/predict.h"
#include "layline/layout/layout.h"
#include "layline/runs/run_record.h"
#include "layline/spec/job.h"

namespace layline::calibrate {

struct ForecastRun {
  const runs::RunRecord* record = nullptr;  // of the tables, which outlive the forecast
  std::shared_ptr<const spec::Job> job;     // its calibration is that of the forecast
  layout::Layout layout;                    // legal
  Prediction prediction;
  // Of known timed runs of the largest sweeps: what a fit predicts that has not seen their sweep either; else 0.
  double unseen_step_seconds = 0;
};

struct Forecast {
  std::string sweep;
  std::vector<ForecastRun> runs;     // of the sweep, whatever came of them
  std::vector<ForecastRun> known;    // those that the fit has seen; none when a shipped calibration served
  double relative_error_bar = 0.5;   // nine of ten known times lie within; of the calibration when none is known
  double memory_relative_sigma = 0;  // of real peaks around predicted ones
};

struct ForecastOptions {
  std::string engine = "";                                       // replaces the engine column when not empty
  std::function<void(size_t done, size_t total)> progress = {};  // sweeps done; may be empty
};

// One a sweep and engine with legal layouts, by name. Records that say scored 0 are left out.
std::vector<Forecast> forecast_sweeps(const std::vector<runs::RunTable>& tables, const ForecastOptions& options);

}  // namespace layline::calibrate
