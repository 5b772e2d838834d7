// Coefficients fitted to runs of one engine on one kind of GPU, with what is known about how good they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layline/spec/coefficients.h"

namespace layline::spec {

// Error of one left-out group of runs (a sweep or a model) after refitting without it.
struct LeftOutError {
  std::string name;
  int64_t num_runs = 0;
  double mean_abs_relative_error = 0;
  double median_abs_relative_error = 0;
};

// Runs of one job that were measured, to set real times beside predictions.
struct MeasuredJob {
  std::string job;                             // measured_job_key() of the job
  std::map<std::string, double> step_seconds;  // layout text → seconds of a step, the median of repeats
};

struct Calibration {
  std::string name;  // "aleph-scaling-a100-80gb"; "none" for the analytic defaults
  std::string engine;
  std::string gpu;                       // Gpu::name the runs were measured on
  std::map<std::string, double> values;  // only what was fitted; the rest keeps its default
  std::vector<std::string> sources;      // files (with row counts) of the runs
  int64_t num_timed_runs = 0;
  int64_t num_verdict_runs = 0;  // ok and oom rows
  // Half-width of the bar that about nine of ten real step times fall into, as a fraction of the prediction.
  double relative_error_bar = 0.5;
  // Standard deviation of real peak memory around the prediction, as a fraction of it; turns margins into
  // probabilities.
  double memory_relative_sigma = 0.08;
  double mean_abs_relative_error = 0;  // in sample
  double median_abs_relative_error = 0;
  std::vector<LeftOutError> left_out;
  std::vector<MeasuredJob> measured;

  bool is_fitted() const { return !values.empty(); }
  // Defaults with `values` put in. Throws base::InputError on an unknown name or a value outside its bounds.
  Coefficients coefficients() const;
};

}  // namespace layline::spec
