#include "layline/trainer/optimizer/learning_rate.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace layline::trainer::optimizer {
namespace {

OptimizerOptions options(Decay decay, int64_t warmup_steps) {
  OptimizerOptions options;
  options.learning_rate = 1e-3;
  options.min_learning_rate = 1e-4;
  options.warmup_steps = warmup_steps;
  options.decay = decay;
  return options;
}

struct Row {
  Decay decay;
  int64_t warmup_steps, step, steps;
  double expected;
};

TEST(LearningRate, IsWhatTheTableSays) {
  const double third = 0.5 * (1 + std::cos(M_PI / 3));  // cosine after a third of the decay
  const Row rows[] = {
      {Decay::kCosine, 10, 1, 40, 1e-4},    {Decay::kCosine, 10, 5, 40, 5e-4},
      {Decay::kCosine, 10, 10, 40, 1e-3},   {Decay::kCosine, 10, 20, 40, 1e-4 + 9e-4 * third},
      {Decay::kCosine, 10, 25, 40, 5.5e-4}, {Decay::kCosine, 10, 40, 40, 1e-4},
      {Decay::kCosine, 10, 400, 40, 1e-4},  {Decay::kCosine, 0, 1, 41, 1e-3},
      {Decay::kCosine, 0, 21, 41, 5.5e-4},  {Decay::kCosine, 0, 41, 41, 1e-4},
      {Decay::kCosine, 1, 1, 41, 1e-3},     {Decay::kCosine, 0, 1, 1, 1e-3},  // nothing to decay over
      {Decay::kCosine, 8, 4, 4, 5e-4},                                        // ends in the warm-up
      {Decay::kLinear, 10, 20, 40, 7e-4},   {Decay::kLinear, 10, 40, 40, 1e-4},
      {Decay::kConstant, 10, 5, 40, 5e-4},  {Decay::kConstant, 10, 11, 40, 1e-3},
      {Decay::kConstant, 10, 40, 40, 1e-3},
  };
  for (const Row& row : rows) {
    EXPECT_NEAR(learning_rate(options(row.decay, row.warmup_steps), row.step, row.steps), row.expected, 1e-18)
        << "step " << row.step << " of " << row.steps << ", warm-up " << row.warmup_steps;
  }
}

RC_GTEST_PROP(LearningRate, RisesToItsPeakAndFallsToItsMinimum, ()) {
  const int64_t warmup_steps = *rc::gen::inRange<int64_t>(0, 20), steps = *rc::gen::inRange<int64_t>(2, 60);
  const OptimizerOptions chosen = options(*rc::gen::element(Decay::kCosine, Decay::kLinear), warmup_steps);
  for (int64_t step = 1; step < steps; ++step) {
    const double now = learning_rate(chosen, step, steps), next = learning_rate(chosen, step + 1, steps);
    RC_ASSERT((step < warmup_steps ? next > now : next < now));
    RC_ASSERT(now > 0 && now <= chosen.learning_rate);
  }
  if (steps > warmup_steps) RC_ASSERT(learning_rate(chosen, steps, steps) == chosen.min_learning_rate);
}

}  // namespace
}  // namespace layline::trainer::optimizer
