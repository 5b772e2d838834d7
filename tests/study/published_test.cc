// The rules at the published runs.
#include <gtest/gtest.h>

#include "tests/study/hand_made.h"

namespace layline::study {
namespace {

EvidenceSummary published(const std::vector<std::string>& names) {
  std::vector<runs::RunTable> tables;
  for (const std::string& name : names) {
    tables.push_back(runs::read_runs(std::string(LAYLINE_SOURCE_DIR) + "/data/published/" + name + ".csv"));
  }
  // The pairs keep copies of what they need.
  return evidence_from_runs(tables, {});
}

const EvidenceSummary& paper() {
  static const EvidenceSummary summary = published({"hagemann2024_a100"});
  return summary;
}

// Numbers of the paper's runs, in ranges that a broken matching would leave.
TEST(PublishedRuns, SayWhatThePaperSays) {
  const Evidence& norm = of_rule(paper(), "fused-norm");
  EXPECT_GE(norm.pairs.size(), 15u);
  EXPECT_LE(norm.pairs.size(), 30u);
  EXPECT_EQ(norm.num_agreeing(), static_cast<int64_t>(norm.pairs.size()));
  EXPECT_NEAR(*norm.median_gain(), 0.15, 0.05);
  EXPECT_GT(norm.num_only_follows_fits, 10);
  const Evidence& checkpointing = of_rule(paper(), "model-parallel-over-checkpointing");
  EXPECT_GE(checkpointing.pairs.size(), 60u);
  EXPECT_GE(checkpointing.num_agreeing() * 10, static_cast<int64_t>(checkpointing.pairs.size()) * 8);
  EXPECT_EQ(checkpointing.num_best_agreeing(), static_cast<int64_t>(checkpointing.best.size()));
  const Evidence& micro_batch = of_rule(paper(), "micro-batch-1");
  EXPECT_GE(micro_batch.pairs.size(), 100u);
  EXPECT_GE(micro_batch.best.size(), 5u);
  EXPECT_EQ(micro_batch.num_best_agreeing(), static_cast<int64_t>(micro_batch.best.size()));
}

TEST(PublishedRuns, PairsDifferOnlyInWhatTheRuleSpeaksOf) {
  const EvidenceSummary all =
      published({"hagemann2024_a100", "nanotron_h100", "megatron_vtrain_a100", "bigscience_a100", "llm_foundry_a100",
                 "megatron_papers", "nemo_h100", "megatron_ci"});
  size_t num_pairs = 0;
  for (const Evidence& evidence : all.rules) {
    for (const Pair& pair : evidence.pairs) {
      ++num_pairs;
      const std::vector<Axis> axes = differing_axes(pair.follows.layout, pair.breaks.layout);
      EXPECT_FALSE(axes.empty()) << pair.follows.text;
      for (const Axis axis : axes) {
        EXPECT_NE(std::find(evidence.rule->axes.begin(), evidence.rule->axes.end(), axis), evidence.rule->axes.end())
            << evidence.rule->id << " " << pair.follows.text << " / " << pair.breaks.text;
      }
      EXPECT_EQ(pair.follows.layout.world_size(), pair.breaks.layout.world_size());
      EXPECT_NEAR(pair.gain, pair.breaks.seconds / pair.follows.seconds - 1, 1e-12);
    }
  }
  EXPECT_GT(num_pairs, 1000u);
}

}  // namespace
}  // namespace layline::study
