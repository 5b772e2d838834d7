#include "layline/sweep/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace layline::sweep {
namespace {

using cost::Kind;

// A layout whose step is `communication` to this share, the rest is computed; `place` tells settings apart.
Candidate candidate(double seconds, double place, double share = 0, Kind communication = Kind::kDataParallel) {
  Candidate candidate;
  candidate.predicted_seconds = seconds;
  candidate.memory_margin = 1;
  candidate.setting.logarithms[0] = place;
  candidate.setting.shares[static_cast<size_t>(Kind::kGemm)] = 1 - share;
  candidate.setting.shares[static_cast<size_t>(communication)] += share;
  return candidate;
}

KnownRun known(double place, size_t group, double error) {
  KnownRun run;
  run.setting = candidate(1, place).setting;
  run.group = group;
  run.log_time_error = error;
  return run;
}

TEST(Tuner, TriesTheFastestFirst) {
  const Tuner tuner({candidate(2, 0), candidate(1, 1), candidate(3, 2)}, {}, {});
  EXPECT_EQ(tuner.next(), 1u);
}

TEST(Tuner, PrefersALittleSlowerToWhatWillNotFit) {
  std::vector<Candidate> candidates = {candidate(1, 0), candidate(1.05, 3)};
  candidates[0].memory_margin = -0.3;
  const Tuner tuner(candidates, {}, {});
  EXPECT_LT(tuner.fit_probability(0), 0.01);
  EXPECT_EQ(tuner.next(), 1u);
}

TEST(Tuner, AMeasuredErrorMovesWhatIsAlikeMost) {
  Tuner tuner({candidate(1, 0), candidate(1, 1), candidate(1, 20)}, {}, {});
  tuner.measured(0, 1.3);
  EXPECT_GT(tuner.expected_seconds(1), tuner.expected_seconds(2));
  EXPECT_GT(tuner.expected_seconds(2), 1.02);  // the same sweep, and the same parts
  EXPECT_LT(tuner.relative_deviation(1), tuner.relative_deviation(2));
}

TEST(Tuner, KnowsLessOfCommunicationThanOfComputing) {
  const Tuner tuner({candidate(1, 0), candidate(1, 0, 0.4), candidate(1, 0, 0.4, Kind::kMemoryPressure)}, {},
                    {.relative_error_bar = 0.07});
  EXPECT_GT(tuner.relative_deviation(1), 1.2 * tuner.relative_deviation(0));
  EXPECT_GT(tuner.relative_deviation(2), 2 * tuner.relative_deviation(1));
}

TEST(Tuner, IsNotSureOfTheBestWhileAnUncertainOneIsNotTried) {
  Tuner sure({candidate(1, 0), candidate(1.2, 1)}, {}, {.relative_error_bar = 0.07});
  Tuner unsure({candidate(1, 0), candidate(1.2, 1, 0.2, Kind::kMemoryPressure)}, {}, {.relative_error_bar = 0.07});
  sure.measured(0, 1);
  unsure.measured(0, 1);
  EXPECT_GT(sure.confidence(), 0.95);
  EXPECT_LT(unsure.confidence(), 0.95);
  EXPECT_EQ(sure.next(), std::nullopt);
  EXPECT_EQ(unsure.next(), 1u);
}

TEST(Tuner, SurprisesMakeItLessSure) {
  std::vector<Candidate> candidates;
  for (int i = 0; i < 4; ++i) candidates.push_back(candidate(1 + 0.01 * i, 10.0 * i));
  Tuner calm(candidates, {}, {.relative_error_bar = 0.05}), surprised = calm;
  calm.measured(0, 1.0);
  surprised.measured(0, 1.5);
  EXPECT_GT(surprised.relative_deviation(3), 1.5 * calm.relative_deviation(3));
}

TEST(Tuner, ANoisyMeasurementTeachesLess) {
  Tuner exact({candidate(1, 0), candidate(1, 1)}, {}, {}), noisy = exact;
  exact.measured(0, 1.2);
  noisy.measured(0, 1.2, 0.5);
  EXPECT_GT(exact.expected_seconds(1), noisy.expected_seconds(1));
  EXPECT_LT(exact.relative_deviation(1), noisy.relative_deviation(1));
}

TEST(Tuner, OutOfMemoryMakesNeighboursLessLikelyToFit) {
  std::vector<Candidate> candidates = {candidate(1, 0), candidate(1, 1), candidate(1, 30)};
  for (Candidate& c : candidates) c.memory_margin = 0.05;
  Tuner tuner(candidates, {}, {});
  const double before = tuner.fit_probability(1), far_before = tuner.fit_probability(2);
  tuner.ran_out_of_memory(0);
  EXPECT_LT(tuner.fit_probability(1), before - 0.1);
  EXPECT_NEAR(tuner.fit_probability(2), far_before, 1e-6);
  EXPECT_EQ(tuner.best(), std::nullopt);
  EXPECT_EQ(tuner.confidence(), 0);
}

TEST(Tuner, LearnsFromRunsThatWereGivenUp) {
  Tuner tuner({candidate(1, 0), candidate(1, 1)}, {}, {});
  tuner.slower_than(0, 2);
  EXPECT_GT(tuner.expected_seconds(1), 1.1);
}

TEST(Tuner, TheErrorsOfKnownSweepsSetItsBars) {
  const auto with_errors = [](double error) {
    std::vector<KnownRun> runs;
    for (size_t group = 0; group < 4; ++group) {
      for (int i = 0; i < 5; ++i) runs.push_back(known(3.0 * i, group, (group + i) % 2 == 0 ? error : -error));
    }
    return Tuner({candidate(1, 100)}, runs, {});
  };
  EXPECT_GT(with_errors(0.2).relative_deviation(0), 3 * with_errors(0.02).relative_deviation(0));
}

TEST(Tuner, TriesEverythingBeforeItGivesUp) {
  Tuner tuner({candidate(1, 0), candidate(2, 1), candidate(3, 2)}, {}, {});
  for (int i = 0; i < 3; ++i) {
    const auto next = tuner.next();
    ASSERT_TRUE(next.has_value());
    tuner.failed(*next);
  }
  EXPECT_EQ(tuner.next(), std::nullopt);
}

// Where errors are as believed, what it calls proven is the best about as often as it says.
TEST(Tuner, ItsConfidenceIsHonestWhereErrorsAreAsBelieved) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  constexpr double kScale = 0.05;
  int right = 0, trials = 0;
  constexpr int kRounds = 200, kLayouts = 20;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Candidate> candidates;
    std::vector<double> real;
    for (int i = 0; i < kLayouts; ++i) {
      candidates.push_back(candidate(1 + 0.02 * i, 20.0 * i));  // errors of their own
      real.push_back(candidates.back().predicted_seconds * std::exp(kScale * normal(random)));
    }
    const double common = std::exp(kScale * normal(random));
    Tuner tuner(candidates, {}, {.relative_error_bar = kScale * 1.7 * std::sqrt(2.0), .noise = 1e-3});
    while (const auto next = tuner.next()) {
      tuner.measured(*next, common * real[*next]);
      ++trials;
    }
    const double best = *std::min_element(real.begin(), real.end());
    right += real[*tuner.best()] <= best * 1.01 / 0.99 ? 1 : 0;
  }
  EXPECT_GE(right, 0.92 * kRounds);
  EXPECT_LT(trials, 0.75 * kRounds * kLayouts);  // and it does not try everything
}

}  // namespace
}  // namespace layline::sweep
