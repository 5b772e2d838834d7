// Every layout computes the same training run: in fp64 the order of additions moves results by about 1e-15, so 1e-10
// separates rounding from mistakes by five orders of magnitude.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "layouts.h"
#include "tiny_run.h"

namespace layline::trainer {
namespace {

const RunRecord& reference_of(const TinyCase& tiny) {
  static std::map<TinyCase, RunRecord> known;
  const auto found = known.find(tiny);
  return found != known.end() ? found->second : known.emplace(tiny, reference_run(tiny)).first->second;
}

void expect_same_run(const std::vector<Trial>& trials) {
  for (const Trial& trial : trials) {
    EXPECT_EQ(compare_run(trial.tiny, trial.layout, reference_of(trial.tiny)), "") << to_text(trial);
  }
}

TEST(EveryLayout, TrainsAsOneRankDoesWithEachAxisAlone) {
  const std::vector<Trial> trials = every_axis_alone();
  EXPECT_GE(trials.size(), 20u);
  expect_same_run(trials);
}

TEST(EveryLayout, TrainsAsOneRankDoesWithEachPairOfSettings) {
  const std::vector<Trial> trials = every_pair_of_settings();
  EXPECT_GE(trials.size(), 200u);
  expect_same_run(trials);
}

// Two halves, so that two cores share them.
TEST(EveryLayout, TrainsAsOneRankDoesWithSettingsDrawnAtRandom) { expect_same_run(seeded_random(150, 1)); }
TEST(EveryLayout, TrainsAsOneRankDoesWithOtherSettingsDrawnAtRandom) { expect_same_run(seeded_random(150, 2)); }

}  // namespace
}  // namespace layline::trainer
