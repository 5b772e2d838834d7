// Each score on runs made by hand, where its value is known.
#include "layline/calibrate/score.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace layline::calibrate {
namespace {

ScoredRun timed(double real, double predicted, double bar = 0.1) {
  ScoredRun run;
  run.sweep = "a";
  run.ran_ok = true;
  run.real_seconds = real;
  run.predicted_seconds = predicted;
  run.relative_error_bar = bar;
  return run;
}

ScoredRun out_of_memory(Verdict verdict, double fit_probability, double predicted = 1) {
  ScoredRun run;
  run.sweep = "a";
  run.ran_out_of_memory = true;
  run.predicted_seconds = predicted;
  run.verdict = verdict;
  run.fit_probability = fit_probability;
  return run;
}

ScoredRun in_sweep(std::string sweep, ScoredRun run) {
  run.sweep = std::move(sweep);
  return run;
}

Scores score(const std::vector<ScoredRun>& runs) {
  std::vector<const ScoredRun*> pointers;
  for (const ScoredRun& run : runs) pointers.push_back(&run);
  return score_sweep(pointers);
}

TEST(Scores, OfNoRunsAreUndefined) {
  for (const Scores& scores : {score({}), score_overall({})}) {
    EXPECT_EQ(scores.num_runs, 0);
    EXPECT_FALSE(scores.mean_abs_relative_error || scores.median_abs_relative_error || scores.bias);
    EXPECT_FALSE(scores.error_bar_coverage || scores.spearman || scores.top1_regret || scores.top1_regret_max);
    EXPECT_FALSE(scores.oom_accuracy || scores.brier || scores.memory_median_abs_relative_error);
  }
}

TEST(Scores, ErrorsAreSharesOfTheRealTime) {
  const Scores scores = score({timed(10, 11), timed(10, 8), timed(20, 20), timed(10, 14)});
  EXPECT_EQ(scores.num_timed, 4);
  EXPECT_DOUBLE_EQ(*scores.mean_abs_relative_error, (0.1 + 0.2 + 0 + 0.4) / 4);
  EXPECT_DOUBLE_EQ(*scores.median_abs_relative_error, (0.1 + 0.2) / 2);
  EXPECT_NEAR(*scores.bias, (0 + 0.1) / 2, 1e-15);
}

TEST(Scores, CoverageCountsRealTimesWithinTheBarAroundThePrediction) {
  // 10 of 12 is 17 % below the prediction, 12 of 10 is 20 % above it: a bar of 0.18 covers only the first.
  EXPECT_DOUBLE_EQ(*score({timed(10, 12, 0.18), timed(12, 10, 0.18)}).error_bar_coverage, 0.5);
  EXPECT_DOUBLE_EQ(*score({timed(10, 12, 0), timed(12, 12, 0)}).error_bar_coverage, 0.5);
}

TEST(Scores, TimesOfRunsThatDidNotEndWellDoNotCount) {
  ScoredRun failed = timed(10, 100);
  failed.ran_ok = false;
  ScoredRun untimed = timed(10, 100);
  untimed.real_seconds.reset();
  const Scores scores = score({timed(10, 11), failed, untimed});
  EXPECT_EQ(scores.num_runs, 3);
  EXPECT_EQ(scores.num_timed, 1);
  EXPECT_NEAR(*scores.mean_abs_relative_error, 0.1, 1e-12);
}

TEST(Scores, VerdictsCountBothWaysOfBeingWrong) {
  ScoredRun alarm = timed(1, 1);
  alarm.verdict = Verdict::kOom;
  alarm.fit_probability = 0.3;
  ScoredRun right = timed(1, 1);
  right.fit_probability = 0.9;
  const Scores scores = score({right, alarm, out_of_memory(Verdict::kOom, 0.2), out_of_memory(Verdict::kFits, 0.6),
                               out_of_memory(Verdict::kFits, 0.5)});
  EXPECT_DOUBLE_EQ(*scores.oom_accuracy, 2.0 / 5);
  EXPECT_EQ(scores.false_fits, 2);
  EXPECT_EQ(scores.false_alarms, 1);
  EXPECT_NEAR(*scores.brier, (0.01 + 0.49 + 0.04 + 0.36 + 0.25) / 5, 1e-12);
}

TEST(Scores, MemoryIsTheMedianErrorOfWhatRan) {
  std::vector<ScoredRun> runs = {timed(1, 1), timed(1, 1), timed(1, 1), out_of_memory(Verdict::kOom, 0)};
  const double predicted[] = {110, 95, 130, 500};
  for (size_t i = 0; i < 4; ++i) {
    runs[i].real_memory_bytes = 100;
    runs[i].predicted_memory_bytes = predicted[i];
  }
  EXPECT_NEAR(*score(runs).memory_median_abs_relative_error, 0.1, 1e-12);
}

TEST(Scores, RegretIsOfTheFirstPickThatRan) {
  // Predicted order: out of memory, 12 s, 10 s.
  const Scores scores = score({timed(10, 3), timed(12, 2), timed(11, 4), out_of_memory(Verdict::kFits, 0.9, 1)});
  EXPECT_NEAR(*scores.top1_regret, 0.2, 1e-12);
  EXPECT_EQ(scores.first_pick_oom, 1);
}

TEST(Scores, OnlyWhatIsPredictedToFitIsPickedButAllIsComparedWith) {
  ScoredRun refused = timed(8, 1);
  refused.verdict = Verdict::kOom;
  const Scores scores = score({refused, timed(10, 2), out_of_memory(Verdict::kOom, 0.1, 0.5)});
  EXPECT_NEAR(*scores.top1_regret, 0.25, 1e-12);
  EXPECT_EQ(scores.first_pick_oom, 0);
}

TEST(Scores, NothingPredictedToFitHasNoRegret) {
  ScoredRun refused = timed(8, 1);
  refused.verdict = Verdict::kOom;
  EXPECT_FALSE(score({refused}).top1_regret);
}

TEST(Scores, SpearmanWantsFiveTimedRuns) {
  std::vector<ScoredRun> runs = {timed(1, 1), timed(2, 2), timed(3, 3), timed(4, 4)};
  EXPECT_FALSE(score(runs).spearman);
  runs.push_back(timed(5, 50));
  EXPECT_DOUBLE_EQ(*score(runs).spearman, 1);
}

TEST(OverallScores, AverageOrderAndRegretOverSweepsAndErrorsOverRows) {
  std::vector<ScoredRun> runs;
  for (const int i : {1, 2, 3, 4, 5}) runs.push_back(in_sweep("up", timed(i, i)));
  for (const int i : {1, 2, 3, 4, 5}) runs.push_back(in_sweep("down", timed(i, 6 - i)));
  runs.push_back(in_sweep("short", timed(10, 20)));
  runs.push_back(in_sweep("short", out_of_memory(Verdict::kFits, 1, 1)));
  const Scores scores = score_overall(runs);
  EXPECT_EQ(scores.num_runs, 12);
  EXPECT_EQ(scores.num_timed, 11);
  EXPECT_NEAR(*scores.spearman, 0, 1e-12);
  EXPECT_NEAR(*scores.top1_regret, (0 + 4 + 0) / 3.0, 1e-12);
  EXPECT_NEAR(*scores.top1_regret_max, 4, 1e-12);
  EXPECT_EQ(scores.first_pick_oom, 1);
  EXPECT_NEAR(*scores.mean_abs_relative_error, (4.0 + 1 + 0 + 0.5 + 0.8 + 1) / 11, 1e-12);
}

TEST(Spearman, KnowsTies) {
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: 4.5 / sqrt(4.5 · 5).
  EXPECT_NEAR(*spearman({1, 2, 2, 3}, {10, 20, 30, 40}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
  EXPECT_FALSE(spearman({1, 1, 1}, {1, 2, 3}));
  EXPECT_FALSE(spearman({1}, {1}));
  EXPECT_FALSE(spearman({}, {}));
}

RC_GTEST_PROP(Spearman, LooksAtTheOrderOnly, (const std::vector<std::pair<int8_t, int8_t>>& pairs)) {
  std::vector<double> a, b, stretched, negated;
  for (const auto& [x, y] : pairs) {
    a.push_back(x);
    b.push_back(y);
    stretched.push_back(std::exp(x / 30.0));
    negated.push_back(-x);
  }
  const auto value = spearman(a, b);
  RC_ASSERT(value.has_value() == spearman(b, a).has_value());
  if (!value) return;
  RC_ASSERT(std::abs(*value) <= 1 + 1e-12);
  RC_ASSERT(std::abs(*value - *spearman(stretched, b)) < 1e-12);
  RC_ASSERT(std::abs(*value + *spearman(negated, b)) < 1e-12);
  RC_ASSERT(std::abs(*value - *spearman(b, a)) < 1e-12);
}

RC_GTEST_PROP(Quantile, LiesBetweenItsNeighbours, (std::vector<double> values)) {
  values.push_back(1);
  for (const double value : values) RC_PRE(std::abs(value) < 1e100);
  const double share = *rc::gen::inRange(0, 101) / 100.0;
  const double found = quantile(values, share);
  const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < found; });
  const auto at_most = std::count_if(values.begin(), values.end(), [&](double v) { return v <= found; });
  const double n = static_cast<double>(values.size());
  RC_ASSERT(static_cast<double>(below) <= share * (n - 1) + 1 + 1e-9);
  RC_ASSERT(static_cast<double>(at_most) >= share * (n - 1) - 1e-9);
}

TEST(Quantile, InterpolatesAndTheMedianIsTheMiddle) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.91), 9.1);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({1, 2, 3}, 1), 3);
}

}  // namespace
}  // namespace layline::calibrate
