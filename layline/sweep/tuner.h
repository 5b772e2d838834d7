// Chooses which layout to measure next, until the best one is found (docs/sweeping.md, T1 to T6).
//
//   Tuner tuner(candidates, known, options);
//   while (const std::optional<size_t> i = tuner.next()) tuner.measured(*i, seconds of candidate i);
//   candidates[*tuner.best()] …
//
// The planner's predictions are the prior. Its errors are alike on layouts that are alike, so each measurement, also of
// other jobs, moves the predictions of the rest and narrows their bars.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "layline/sweep/belief.h"
#include "layline/sweep/similarity.h"

namespace layline::sweep {

// A legal layout that may be tried.
struct Candidate {
  Setting setting;
  double predicted_seconds = 0;
  double memory_margin = 0;  // (memory - predicted peak) / predicted peak: below 0 it is predicted not to fit
};

// A run that the predictions were fitted to.
struct KnownRun {
  Setting setting;
  size_t group = 0;                      // its sweep; runs of one group share an error
  std::optional<double> log_time_error;  // log(real / predicted) of step seconds
  // The same where the prediction had not seen the run's sweep; else log_time_error serves, which is too small.
  std::optional<double> unseen_log_time_error;
  double memory_margin = 0;
  std::optional<bool> is_out_of_memory;
};

struct TunerOptions {
  double relative_error_bar = 0.5;  // nine of ten real times lie within
  double memory_relative_sigma = 0.08;
  double noise = 0.01;       // of one measured step time, as a fraction
  double confidence = 0.95;  // the best is found when nothing is faster by the tolerance with this probability
  double tolerance = 0.01;
};

class Tuner {
 public:
  Tuner(std::vector<Candidate> candidates, const std::vector<KnownRun>& known, const TunerOptions& options);

  // What to try now: the candidate with the largest expected improvement. None when the best is found with the
  // confidence that was asked for, or when nothing is left.
  std::optional<size_t> next() const;

  // What came of a candidate. noise: of this time beside TunerOptions::noise, as a fraction.
  void measured(size_t i, double step_seconds, double noise = 0);
  void slower_than(size_t i, double step_seconds);  // given up after this
  void ran_out_of_memory(size_t i);
  void failed(size_t i);                                  // says nothing of others
  void measured_memory(size_t i, double relative_error);  // real peak / predicted peak - 1

  // The fastest measured one.
  std::optional<size_t> best() const { return best_; }

  // Probability that no candidate that was not tried runs faster than the best by more than the tolerance: a lower
  // bound, as errors that go together make it larger. 0 while nothing was measured.
  double confidence() const;

  // As believed now.
  double expected_seconds(size_t i) const;
  double relative_deviation(size_t i) const;
  double fit_probability(size_t i) const;

 private:
  double target_log_seconds() const;
  double expected_improvement(size_t i, double target) const;

  std::vector<Candidate> candidates_;
  TunerOptions options_;
  Belief time_;    // log(real / predicted)
  Belief memory_;  // real / predicted peak - 1
  std::vector<bool> is_tried_;
  double surprise_ = 0;  // squared deviations of what was measured from what was believed: a Student process
  int num_measured_ = 0;
  std::optional<size_t> best_;
  double best_seconds_ = 0;
};

}  // namespace layline::sweep
