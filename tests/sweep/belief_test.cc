#include "layline/sweep/belief.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace layline::sweep {
namespace {

Belief pair(double correlation) { return {{0, 0}, {1, correlation, correlation, 1}}; }

TEST(Belief, FollowsAMeasurementAsFarAsItIsExact) {
  Belief belief = pair(0.5);
  belief.learn_value(0, 1, 1);  // as exact as what was believed: half way
  EXPECT_DOUBLE_EQ(belief.mean(0), 0.5);
  EXPECT_DOUBLE_EQ(belief.mean(1), 0.25);
  EXPECT_DOUBLE_EQ(belief.standard_deviation(0), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(belief.standard_deviation(1), std::sqrt(1 - 0.125));
}

TEST(Belief, WhatIsUnrelatedStays) {
  Belief belief = pair(0);
  belief.learn_value(0, 3, 0.1);
  EXPECT_EQ(belief.mean(1), 0);
  EXPECT_EQ(belief.standard_deviation(1), 1);
}

// Of a standard normal number below 0: mean -sqrt(2/pi), variance 1 - 2/pi.
TEST(Belief, KnowsTheMomentsOfATruncatedNumber) {
  Belief belief = pair(0.5);
  belief.learn_at_most(0, 0, 1e-9);
  EXPECT_NEAR(belief.mean(0), -std::sqrt(2 / M_PI), 1e-6);
  EXPECT_NEAR(belief.standard_deviation(0), std::sqrt(1 - 2 / M_PI), 1e-6);
  EXPECT_NEAR(belief.mean(1), -std::sqrt(2 / M_PI) / 2, 1e-6);
}

TEST(Belief, AtLeastMirrorsAtMost) {
  Belief below = pair(0.3), above = pair(0.3);
  below.learn_at_most(0, -0.7, 0.2);
  above.learn_at_least(0, 0.7, 0.2);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(below.mean(i), -above.mean(i));
    EXPECT_DOUBLE_EQ(below.standard_deviation(i), above.standard_deviation(i));
  }
}

TEST(Belief, StaysFiniteFarInTheTail) {
  Belief belief = pair(0.9);
  belief.learn_at_least(0, 100, 0.01);
  EXPECT_NEAR(belief.mean(0), 100, 1);
  EXPECT_TRUE(std::isfinite(belief.standard_deviation(1)));
}

RC_GTEST_PROP(Belief, LearningNeverWidens, ()) {
  const double correlation = *rc::gen::inRange(-99, 100) / 100.0;
  Belief belief = pair(correlation);
  for (const int value : *rc::gen::container<std::vector<int>>(rc::gen::inRange(-300, 300))) {
    const double before = belief.standard_deviation(1);
    const double x = value / 100.0;
    switch (value % 3) {
      case 0:
        belief.learn_value(0, x, 0.3);
        break;
      case 1:
        belief.learn_at_most(0, x, 0.3);
        break;
      default:
        belief.learn_at_least(0, x, 0.3);
    }
    RC_ASSERT(belief.standard_deviation(1) <= before + 1e-12);
    RC_ASSERT(std::isfinite(belief.mean(1)));
  }
}

TEST(Belief, TheFirstNumbersKeepWhatWasLearned) {
  Belief belief = pair(0.5);
  belief.learn_value(1, 2, 0.5);
  const Belief first = belief.first(1);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first.mean(0), belief.mean(0));
  EXPECT_EQ(first.standard_deviation(0), belief.standard_deviation(0));
}

}  // namespace
}  // namespace layline::sweep
