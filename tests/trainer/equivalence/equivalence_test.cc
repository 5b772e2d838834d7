// Every layout computes the same training run: in fp64 the order of additions moves results by about 1e-15, so 1e-10
// separates rounding from mistakes by five orders of magnitude.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "layline/layout/layout_text.h"
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

// Shapes and splits over which trainers have been reported to fail.
TEST(EveryLayout, TrainsAsOneRankDoesWithVocabulariesThatTpDoesNotDivide) {
  for (const int64_t vocab : {5, 17, 127, 31123}) {
    for (const char* layout : {"dp1 tp2 pp1 mb4", "dp1 tp4 pp1 mb4 sp", "dp1 tp2 pp2 mb4"}) {
      expect_same_run({{{.tied = vocab == 127, .vocab = vocab, .steps = 2}, layout::parse_layout(layout)}});
    }
  }
}

TEST(EveryLayout, TrainsAll30LayersOn4Stages) {
  for (const char* layout : {"dp1 tp1 pp4 mb4", "dp1 tp1 pp4 mb4 split=uniform", "dp1 tp1 pp4 mb4 sched=gpipe"}) {
    expect_same_run({{{.num_layers = 30, .steps = 2}, layout::parse_layout(layout)}});
  }
}

TEST(EveryLayout, TrainsAsOneRankDoesWithFewerMicroBatchesThanStages) {
  for (const char* layout : {"dp1 tp1 pp4 mb2", "dp1 tp1 pp4 mb1", "dp1 tp1 pp4 mb1 sched=gpipe",
                             "dp1 tp1 pp4 mb1 sched=zb", "dp2 tp1 pp4 mb1"}) {
    expect_same_run({{{.global_batch = 2}, layout::parse_layout(layout)}});
  }
}

TEST(EveryLayout, TrainsAsOneRankDoesWithMoreTpThanKeyValueHeads) {
  for (const int64_t num_kv_heads : {1, 2}) {
    for (const char* layout : {"dp1 tp4 pp1 mb4", "dp1 tp4 pp1 mb4 sp", "dp2 tp4 pp2 mb2"}) {
      expect_same_run({{{.num_kv_heads = num_kv_heads}, layout::parse_layout(layout)}});
    }
  }
}

}  // namespace
}  // namespace layline::trainer
