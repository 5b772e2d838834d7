#include "layline/memory/stage_groups.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layline/layout/stage_split.h"

namespace layline::memory {
namespace {

layout::Layout pipeline(int64_t pp, int64_t vp, layout::SplitKind split) {
  layout::Layout layout;
  layout.pp = pp;
  layout.vp = vp;
  layout.split = split;
  return layout;
}

// Layers of each pipeline rank, chunk by chunk.
std::vector<int64_t> layers_of_ranks(const layout::Layout& layout, int64_t num_layers) {
  std::vector<int64_t> layers(static_cast<size_t>(layout.pp), 0);
  const auto stages = layout::stages_of(layout, num_layers);
  for (size_t j = 0; j < stages.size(); ++j) layers[j % layers.size()] += stages[j].num_layers;
  return layers;
}

RC_GTEST_PROP(StageGroups, SayTheSameAsTheStagesOneByOne, ()) {
  const int64_t pp = *rc::gen::inRange<int64_t>(1, 20);
  const int64_t vp = pp == 1 ? 1 : *rc::gen::inRange<int64_t>(1, 5);
  const auto split =
      *rc::gen::element(layout::SplitKind::kEven, layout::SplitKind::kUniform, layout::SplitKind::kBalanced);
  const int64_t num_layers = pp * vp * 3 + *rc::gen::inRange<int64_t>(0, 60);
  const layout::Layout layout = pipeline(pp, vp, split);
  std::vector<StageGroup> groups;
  group_stages(layout, num_layers, {}, groups);
  std::vector<int64_t> layers;
  for (const StageGroup& group : groups) {
    RC_ASSERT(group.first_rank == static_cast<int64_t>(layers.size()));
    RC_ASSERT(group.has_embedding == (group.first_rank == 0));
    RC_ASSERT(group.has_head == (group.first_rank + group.num_ranks == pp && (group.num_ranks == 1)));
    layers.insert(layers.end(), static_cast<size_t>(group.num_ranks), group.num_layers);
  }
  RC_ASSERT(layers == layers_of_ranks(layout, num_layers));
}

TEST(StageGroups, StayFewHoweverLongThePipelineIs) {
  std::vector<StageGroup> groups;
  group_stages(pipeline(63, 2, layout::SplitKind::kEven), 126, {}, groups);
  EXPECT_LE(groups.size(), 4u);
}

TEST(StageGroups, UniformSplitOfTheThirteenBOnTwoStagesIsTwentyOneAndNineteen) {
  std::vector<StageGroup> groups;
  group_stages(pipeline(2, 1, layout::SplitKind::kUniform), 40, {}, groups);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].num_layers, 21);
  EXPECT_EQ(groups[1].num_layers, 19);
}

}  // namespace
}  // namespace layline::memory
