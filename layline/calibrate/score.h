// Scores of predictions against run records, and nothing else: how far, in which order, and what fits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace layline::calibrate {

enum class Verdict { kFits, kOom, kIllegal };

// One run and what was predicted for it. Real values are missing where the record has none.
struct ScoredRun {
  std::string sweep;
  bool ran_ok = false;             // status ok
  bool ran_out_of_memory = false;  // status oom
  std::optional<double> real_seconds;
  double predicted_seconds = 0;
  double relative_error_bar = 0;  // the real time is expected within ± this share of the prediction
  std::optional<double> real_memory_bytes;
  double predicted_memory_bytes = 0;
  Verdict verdict = Verdict::kFits;
  double fit_probability = 1;
};

// Undefined values (no rows to take them over) are nullopt and print as null.
struct Scores {
  int64_t num_runs = 0, num_timed = 0, num_unscored = 0;
  std::optional<double> mean_abs_relative_error;
  std::optional<double> median_abs_relative_error;
  std::optional<double> bias;                // median of predicted / real - 1
  std::optional<double> error_bar_coverage;  // share of real times within the bar
  std::optional<double> spearman;            // timed rows; one sweep with at least 5
  std::optional<double> top1_regret;         // time of the first pick that ran, over the best real time, - 1
  std::optional<double> top1_regret_max;
  int64_t first_pick_oom = 0;  // sweeps whose first pick really ran out of memory
  std::optional<double> oom_accuracy;
  int64_t false_fits = 0;    // predicted to fit, ran out of memory
  int64_t false_alarms = 0;  // predicted out of memory, ran
  std::optional<double> brier;
  std::optional<double> memory_median_abs_relative_error;
};

// Scores of the runs of one sweep.
Scores score_sweep(const std::vector<const ScoredRun*>& runs);

// Over all runs: errors over all rows; spearman and top1_regret are plain means over sweeps, the maximum beside it.
Scores score_overall(const std::vector<ScoredRun>& runs);

// Spearman rank correlation with average ranks for ties; nullopt for fewer than two distinct values.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

double median(std::vector<double> values);                  // of at least one value
double quantile(std::vector<double> values, double share);  // linear interpolation

}  // namespace layline::calibrate
