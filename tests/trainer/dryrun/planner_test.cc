// The planner's formulas for the trainer against the trainer's own bytes.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "layline/search/explain.h"
#include "layline/trainer/dryrun/dry_run.h"
#include "tests/trainer/dryrun/random_trial.h"

namespace layline::trainer::dryrun {
namespace {

constexpr double kWanted = 0.01;
// Scratch memory of bf16 products, which oneDNN chooses for itself and the planner does not count.
constexpr double kProductScratchBytes = 1.4e6;

// Of every stage, with nothing fitted.
void expect_agreement(uint64_t seed, int num_trials) {
  at::set_num_threads(1);
  TrialGenerator generator(seed, TrialGenerator::Scope::kQuick);
  for (int i = 0; i < num_trials; ++i) {
    const Trial trial = generator.next();
    const DryRun run = dry_run(training_job(trial));
    const search::Explanation planned = search::explain(trial.job, trial.layout);
    ASSERT_EQ(planned.stages.size(), run.stages.size()) << to_text(trial);
    for (const StageBytes& stage : run.stages) {
      const double found = static_cast<double>(stage.peak_bytes);
      const double predicted = planned.stages[static_cast<size_t>(stage.stage)].memory.total();
      EXPECT_NEAR(predicted, found, std::max(kWanted * found, kProductScratchBytes))
          << to_text(trial) << " stage " << stage.stage << ", " << describe(stage.peak_moment, trial.layout.vp);
    }
  }
}

class PlannerOf : public testing::TestWithParam<uint64_t> {};

TEST_P(PlannerOf, RandomLayoutsKnowsTheirBytesToOnePercent) { expect_agreement(GetParam(), 25); }

INSTANTIATE_TEST_SUITE_P(Seeds, PlannerOf, testing::Range<uint64_t>(11, 17));

}  // namespace
}  // namespace layline::trainer::dryrun
