// A run that stops under one layout and goes on under another is the run that never stopped.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/trainer/model/mutation.h"
#include "layouts.h"
#include "resumed_run.h"

namespace layline::trainer {
namespace {

using model::Mutation;

constexpr int64_t kSteps = 5;

Interruption interruption(const std::string& before, const std::string& after) {
  return {layout::parse_layout(before), layout::parse_layout(after)};
}

class Resume : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Resume, ContinuesUnderAnotherLayout) {
  for (const bool tied : {false, true}) {
    const TinyCase tiny{.num_kv_heads = 2, .tied = tied, .global_batch = 30, .steps = kSteps};
    const RunRecord reference = reference_run(tiny);
    EXPECT_EQ(compare_resumed(tiny, interruption(GetParam().first, GetParam().second), reference), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Resume,
    testing::Values(std::pair{"dp1 tp1 pp1 mb1", "dp1 tp1 pp1 mb1"}, std::pair{"dp3 tp1 pp1 mb1", "dp2 tp1 pp1 mb1"},
                    std::pair{"dp2 tp1 pp1 mb1", "dp5 tp1 pp1 mb1"}, std::pair{"dp1 tp1 pp1 mb1", "dp1 tp4 pp1 mb1 sp"},
                    std::pair{"dp1 tp4 pp1 mb1 sp", "dp3 tp2 pp1 mb1"}, std::pair{"dp1 tp1 pp4 mb1", "dp2 tp2 pp2 mb1"},
                    std::pair{"dp1 tp2 pp2 mb1 vp2 sched=interleaved", "dp1 tp1 pp3 mb1"},
                    std::pair{"dp3 tp1 pp1 mb1 zero0", "dp2 tp1 pp1 mb1 zero1"},
                    std::pair{"dp5 tp1 pp1 mb1 zero1", "dp3 tp1 pp2 mb1 zero0"}));

TEST(ResumeAtRandom, ContinuesUnderAnyLayout) {
  constexpr int64_t kTrials = 60;
  const std::vector<Trial> before = seeded_random(kTrials, 11), after = seeded_random(kTrials, 12);
  std::map<TinyCase, RunRecord> references;
  for (size_t i = 0; i < before.size(); ++i) {
    TinyCase tiny = before[i].tiny;
    tiny.steps = kSteps;
    Interruption change{before[i].layout, after[i].layout};
    // The second layout must be one of the first trial's model.
    if (!layout::is_legal(change.after, tiny_job(tiny, change.after.world_size()))) change.after = layout::Layout{};
    if (references.count(tiny) == 0) references[tiny] = reference_run(tiny);
    EXPECT_EQ(compare_resumed(tiny, change, references.at(tiny)), "")
        << to_text(before[i]) << " to " << layout::to_text(change.after);
  }
}

// bf16 weights follow from the fp32 masters: the same bits under the same layout.
TEST(ResumeInBf16, GivesTheSameBits) {
  const TinyCase tiny{.steps = kSteps, .dtype = at::kBFloat16};
  const RunRecord reference = reference_run(tiny);
  Interruption change = interruption("dp1 tp1 pp1 mb1", "dp1 tp1 pp1 mb1");
  change.before.mb = change.after.mb = tiny.global_batch;  // as the reference
  EXPECT_EQ(compare_resumed(tiny, change, reference, 0), "");
}

struct Broken {
  Mutation mutation;
  const char* name;
  const char* layout;
};

class ResumeRule : public testing::TestWithParam<Broken> {
 protected:
  void TearDown() override { model::set_mutation(Mutation::kNone); }
};

TEST_P(ResumeRule, TurnsTheComparisonRedWhenBroken) {
  const TinyCase tiny{.steps = kSteps};
  const RunRecord reference = reference_run(tiny);
  const Interruption change = interruption(GetParam().layout, "dp1 tp2 pp1 mb1");
  EXPECT_EQ(compare_resumed(tiny, change, reference), "");
  model::set_mutation(GetParam().mutation);
  EXPECT_NE(compare_resumed(tiny, change, reference), "");
}

INSTANTIATE_TEST_SUITE_P(Mutations, ResumeRule,
                         testing::Values(Broken{Mutation::kForgetMoments, "MomentsAreKept", "dp1 tp1 pp1 mb1"},
                                         Broken{Mutation::kForgetSteps, "StepsAreCountedOn", "dp1 tp1 pp1 mb1"},
                                         Broken{Mutation::kForgetDataPosition, "DataGoesOn", "dp1 tp1 pp1 mb1"},
                                         Broken{Mutation::kLateCopy, "TheCopyIsOfOneMoment", "dp2 tp1 pp1 mb1"},
                                         Broken{Mutation::kSaveReplicas, "EveryElementIsSavedOnce",
                                                "dp2 tp1 pp1 mb1 zero0"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace layline::trainer
