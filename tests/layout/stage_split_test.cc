#include "layline/layout/stage_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "layline/layout/legality.h"
#include "layouts.h"

namespace layline::layout {
namespace {

using testing::ElementsAre;
using Counts = std::vector<int64_t>;

int64_t sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

double slowest(const Counts& counts, double embedding_cost, double head_cost) {
  double worst = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double ends = (i == 0 ? embedding_cost : 0) + (i + 1 == counts.size() ? head_cost : 0);
    worst = std::max(worst, static_cast<double>(counts[i]) + ends);
  }
  return worst;
}

// The slowest stage of the best split, by trying all.
double best_by_trying(int64_t layers, size_t stages, double embedding_cost, double head_cost) {
  double best = 1e300;
  Counts counts(stages, 1);
  const std::function<void(size_t, int64_t)> place = [&](size_t stage, int64_t left) {
    if (stage + 1 == stages) {
      counts[stage] = left;
      best = std::min(best, slowest(counts, embedding_cost, head_cost));
      return;
    }
    for (int64_t n = 1; n <= left - static_cast<int64_t>(stages - stage - 1); ++n) {
      counts[stage] = n;
      place(stage + 1, left - n);
    }
  };
  place(0, layers);
  return best;
}

RC_GTEST_PROP(StageSplit, KeepsEveryLayerAndLeavesNoStageEmptyWhenItCan, ()) {
  const auto kind = static_cast<SplitKind>(*rc::gen::inRange(0, 3));
  const auto stages = *rc::gen::inRange<int64_t>(1, 70);
  const auto layers = *rc::gen::inRange<int64_t>(1, 130);
  const double embedding = *rc::gen::inRange(0, 40) / 7.0, head = *rc::gen::inRange(0, 90) / 7.0;
  const Counts counts = split_layers(kind, layers, stages, embedding, head);
  RC_ASSERT(static_cast<int64_t>(counts.size()) == stages);
  RC_ASSERT(sum(counts) == layers);
  RC_ASSERT(*std::min_element(counts.begin(), counts.end()) >= (layers >= stages ? 1 : 0));
}

RC_GTEST_PROP(StageSplit, BalancedIsAsGoodAsTryingAllSplits, ()) {
  const auto stages = *rc::gen::inRange<size_t>(1, 6);
  const auto layers = *rc::gen::inRange<int64_t>(static_cast<int64_t>(stages), 16);
  const double embedding = *rc::gen::inRange(0, 40) / 7.0, head = *rc::gen::inRange(0, 90) / 7.0;
  const Counts counts = split_layers(SplitKind::kBalanced, layers, static_cast<int64_t>(stages), embedding, head);
  RC_ASSERT(slowest(counts, embedding, head) <= best_by_trying(layers, stages, embedding, head) + 1e-12);
}

RC_GTEST_PROP(StageSplit, BalancedWithoutEndCostsIsEven, ()) {
  const auto stages = *rc::gen::inRange<int64_t>(1, 40);
  const auto layers = *rc::gen::inRange<int64_t>(1, 130);
  RC_ASSERT(split_layers(SplitKind::kBalanced, layers, stages) == split_layers(SplitKind::kEven, layers, stages));
}

RC_GTEST_PROP(StageSplit, UniformIsLegalExactlyWhenDealingLeavesEachStageALayer, ()) {
  const auto stages = *rc::gen::inRange<int64_t>(1, 20);
  const auto layers = *rc::gen::inRange<int64_t>(1, 100);
  Counts dealt = split_layers(SplitKind::kEven, layers + 3, stages);
  dealt.front() -= 1;
  dealt.back() -= 2;
  const bool each_has_one = *std::min_element(dealt.begin(), dealt.end()) >= 1;
  spec::Job job = small_job();
  job.model.num_layers = layers;
  job.num_gpus = stages;
  Layout layout;
  layout.pp = stages;
  layout.split = SplitKind::kUniform;
  RC_ASSERT(is_legal(layout, job) == each_has_one);
  if (each_has_one) RC_ASSERT(split_layers(SplitKind::kUniform, layers, stages) == dealt);
}

TEST(StageSplit, EvenGivesTheRemainderToTheFirstStages) {
  EXPECT_THAT(split_layers(SplitKind::kEven, 30, 4), ElementsAre(8, 8, 7, 7));
}

TEST(StageSplit, UniformCountsEmbeddingNormAndHeadAsLayers) {
  EXPECT_THAT(split_layers(SplitKind::kUniform, 40, 2), ElementsAre(21, 19));
  EXPECT_THAT(split_layers(SplitKind::kUniform, 60, 4), ElementsAre(15, 16, 16, 13));
  EXPECT_THAT(split_layers(SplitKind::kUniform, 40, 1), ElementsAre(40));
}

TEST(StageSplit, WithEndsIsMegatrons) {
  EXPECT_THAT(*split_with_ends(40, 4, 8, 10), ElementsAre(8, 11, 11, 10));
  EXPECT_THAT(*split_with_ends(40, 4, {}, 10), ElementsAre(10, 10, 10, 10));
  EXPECT_THAT(*split_with_ends(40, 2, 21, 19), ElementsAre(21, 19));
  EXPECT_FALSE(split_with_ends(40, 4, 8, 9));
  EXPECT_FALSE(split_with_ends(40, 2, 21, 20));
  EXPECT_FALSE(split_with_ends(40, 4, 40, {}));
  EXPECT_FALSE(split_with_ends(40, 1, 20, 20));
}

TEST(StagesOf, NumbersLayersInOrderAndMarksTheEnds) {
  Layout layout;
  layout.pp = 2;
  layout.split = SplitKind::kExplicit;
  layout.explicit_split = {21, 19};
  const std::vector<Stage> stages = stages_of(layout, 40);
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_TRUE(stages[0].has_embedding && !stages[0].has_head);
  EXPECT_TRUE(!stages[1].has_embedding && stages[1].has_head);
  EXPECT_EQ(stages[1].first_layer, 21);
  EXPECT_EQ(stages[1].num_layers, 19);
}

}  // namespace
}  // namespace layline::layout
