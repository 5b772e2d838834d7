#include "layline/study/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layline/layout/layout_text.h"

namespace layline::study {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

layout::Layout parsed(const std::string& text) { return layout::parse_layout(text, {.num_gpus = 64}); }

TEST(Axis, NamesEveryDifference) {
  const layout::Layout plain = parsed("tp2 pp2 mb1");
  EXPECT_THAT(differing_axes(plain, plain), IsEmpty());
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb2")), ElementsAre(Axis::kMicroBatch));
  EXPECT_THAT(differing_axes(plain, parsed("tp4 pp1 mb1")), ElementsAre(Axis::kTensor, Axis::kPipeline));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 sp")), ElementsAre(Axis::kSequenceParallel));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 ckpt=full")), ElementsAre(Axis::kCheckpointing));
  EXPECT_THAT(differing_axes(parsed("tp1 pp2 mb1 ckpt=full"), parsed("tp1 pp2 mb1 ckpt=full:2")),
              ElementsAre(Axis::kCheckpointing));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 zero3")), ElementsAre(Axis::kSharding));
  EXPECT_THAT(differing_axes(parsed("tp1 pp1 mb1 zero3"), parsed("tp1 pp1 mb1 hsdp8")), ElementsAre(Axis::kSharding));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 sched=gpipe")), ElementsAre(Axis::kSchedule));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 split=21,19")), ElementsAre(Axis::kSplit));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 attn=flash1")), ElementsAre(Axis::kAttention));
  EXPECT_THAT(differing_axes(plain, parsed("tp2 pp2 mb1 norm=unfused")), ElementsAre(Axis::kNorm));
}

TEST(Axis, SeesNoSequenceParallelismAtOneTensorRank) {
  EXPECT_THAT(differing_axes(parsed("tp1 pp2 mb1"), parsed("tp2 pp2 mb1 sp")), ElementsAre(Axis::kTensor));
}

TEST(Axis, GroupsWhatMayBeComparedAndNothingElse) {
  const std::vector<Axis> axes = {Axis::kMicroBatch};
  EXPECT_EQ(text_without(axes, parsed("tp2 pp2 mb1")), text_without(axes, parsed("tp2 pp2 mb8")));
  EXPECT_NE(text_without(axes, parsed("tp2 pp2 mb1")), text_without(axes, parsed("tp2 pp4 mb8")));
  EXPECT_TRUE(differ_only_in(axes, parsed("tp2 pp2 mb1"), parsed("tp2 pp2 mb8")));
  EXPECT_FALSE(differ_only_in(axes, parsed("tp2 pp2 mb1"), parsed("tp2 pp4 mb8")));
}

}  // namespace
}  // namespace layline::study
