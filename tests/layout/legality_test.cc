#include "layline/layout/legality.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "layline/layout/layout_text.h"
#include "layouts.h"

namespace layline::layout {
namespace {

struct Case {
  const char* text;
  Rule rule;
  const char* reason;
  void (*change)(spec::Job&) = nullptr;
};

class Legal : public testing::TestWithParam<Case> {};
TEST_P(Legal, SaysTheRuleAndTheNumbers) {
  spec::Job job = small_job();
  if (GetParam().change != nullptr) GetParam().change(job);
  const Layout layout = parse_layout(GetParam().text, {.num_gpus = 64});
  const Legality verdict = legality(layout, job);
  EXPECT_EQ(verdict.rule, GetParam().rule) << verdict.reason;
  EXPECT_EQ(verdict.reason, GetParam().reason);
  EXPECT_EQ(verdict.legal, GetParam().rule == Rule::kNone);
}

const Case kCases[] = {
    {"", Rule::kNone, ""},
    {"tp2 sp pp2 mb2", Rule::kNone, ""},
    {"tp40 dp1", Rule::kNone, "", [](auto& job) { job.num_gpus = 40, job.model.ffn_hidden = 13800; }},
    {"tp8 pp8 sched=zb split=balanced", Rule::kNone, ""},
    {"pp2 vp20 mb4", Rule::kNone, ""},
    {"pp64 mb2048 split=even", Rule::kTooFewLayers, "pp 64 · vp 1 = 64 stages, the model has 40 layers"},
    {"pp32 mb1024 dp2", Rule::kNone, ""},
    {"dp16 tp2", Rule::kWorldSize, "dp 16 · tp 2 · pp 1 · cp 1 = 32 ranks, the job has 64 GPUs"},
    {"ep2", Rule::kExperts, "ep 2 needs a mixture of experts"},
    {"tp2", Rule::kTensorParallel, "engine able has no tensor parallelism",
     [](auto& job) { job.engine.has_tensor_parallel = false; }},
    {"tp16 dp4", Rule::kHeads, "tp 16 does not divide 40 heads"},
    {"tp3 dp1", Rule::kHeads, "tp 3 does not divide 40 heads", [](auto& job) { job.num_gpus = 3; }},
    {"tp10 dp1", Rule::kKeyValueHeads, "tp 10 and 8 key-value heads: neither divides the other",
     [](auto& job) { job.num_gpus = 10; }},
    {"tp8", Rule::kFeedForward, "tp 8 does not divide the feed-forward width 13820",
     [](auto& job) { job.model.ffn_hidden = 13820; }},
    {"cp2", Rule::kContextParallel, "engine able has no context parallelism",
     [](auto& job) { job.engine.has_context_parallel = false; }},
    {"cp2", Rule::kContextSequence, "2·cp = 4 does not divide the sequence length 2050",
     [](auto& job) { job.sequence_length = 2050; }},
    {"tp2 sp", Rule::kSequenceParallel, "engine able has no sequence parallelism",
     [](auto& job) { job.engine.has_sequence_parallel = false; }},
    {"tp2", Rule::kSequenceParallelAlways, "engine able always runs tp 2 with sequence parallelism (sp)",
     [](auto& job) { job.engine.sequence_parallel_always = true; }},
    {"tp8 cp2 sp", Rule::kSequenceShards, "sp: tp 8 does not divide the 1026 tokens of a sequence on each rank",
     [](auto& job) { job.sequence_length = 2052; }},
    {"pp2", Rule::kPipelineParallel, "engine able has no pipeline parallelism",
     [](auto& job) { job.engine.has_pipeline_parallel = false; }},
    {"pp2 vp2", Rule::kVirtualStages, "engine able has no virtual stages",
     [](auto& job) { job.engine.has_virtual_stages = false; }},
    {"vp2", Rule::kVirtualWithoutPipeline, "vp 2 needs a pipeline (pp > 1)"},
    {"pp2 sched=zb", Rule::kSchedule, "engine able has no schedule zb (it has 1f1b)",
     [](auto& job) { job.engine.schedules = {ScheduleKind::kOneFOneB}; }},
    {"pp2 vp2 sched=zb", Rule::kVirtualSchedule, "schedule zb runs one chunk a rank, vp is 2"},
    {"pp2 sched=interleaved", Rule::kInterleavedOneChunk, "schedule interleaved needs vp of at least 2"},
    {"mb64", Rule::kMicroBatches, "dp 64 · mb 64 = 4096 does not divide the global batch 2048"},
    {"pp8 vp2 dp8 mb64", Rule::kInterleavedMultiple, "interleaved: 4 micro-batches are not a multiple of pp 8"},
    {"pp8 vp2 dp8 mb64", Rule::kNone, "", [](auto& job) { job.engine.interleaved_needs_multiple_of_pp = false; }},
    {"pp2 split=uniform", Rule::kSplit, "engine able has no split uniform (it has even)",
     [](auto& job) { job.engine.splits = {SplitKind::kEven}; }},
    {"pp16 split=uniform", Rule::kUniformEnds,
     "split uniform: 40 layers, embedding, norm and head on 16 stages leave the last without a layer"},
    {"pp2 split=40", Rule::kExplicitCount, "the split has 1 counts, pp 2 · vp 1 = 2 stages"},
    {"pp2 split=20,21", Rule::kExplicitLayers, "the split 20,21 must be at least 1 each and add up to 40 layers"},
    {"pp2 split=21,19", Rule::kNone, ""},
    {"zero2", Rule::kZero, "engine able has no ZeRO-2 (it has ZeRO 0, 1)",
     [](auto& job) { job.engine.zero_stages = {0, 1}; }},
    {"hsdp8", Rule::kHybridSharding, "engine able has no hybrid sharding (hsdp)",
     [](auto& job) { job.engine.has_hybrid_sharding = false; }},
    {"hsdp7", Rule::kHybridGroups, "hsdp 7 does not divide dp 64"},
    {"ckpt=selective", Rule::kCheckpointing, "engine able has no checkpointing selective (it has none, full)",
     [](auto& job) { job.engine.checkpointing = {Checkpointing::kNone, Checkpointing::kFull}; }},
    {"ckpt=full:3", Rule::kPartialCheckpointing, "engine able has no checkpointing of the first 3 layers of a stage",
     [](auto& job) { job.engine.has_partial_checkpointing = false; }},
    {"attn=flash1", Rule::kAttention, "engine able has no attention kernel flash1 (it has flash2)",
     [](auto& job) { job.engine.attention_kernels = {AttentionKernel::kFlash2}; }},
    {"norm=unfused", Rule::kNorm, "engine able has no norm kernel unfused (it has fused)",
     [](auto& job) { job.engine.norm_kernels = {NormKernel::kFused}; }},
};
INSTANTIATE_TEST_SUITE_P(All, Legal, testing::ValuesIn(kCases));

TEST(LegalityTable, HasACaseForEveryRule) {
  std::set<Rule> seen;
  for (const Case& c : kCases) seen.insert(c.rule);
  seen.insert({Rule::kAxisRange, Rule::kHybridZero});  // no text can say them; tested below
  EXPECT_EQ(seen.size(), static_cast<size_t>(Rule::kNorm) + 1);
}

TEST(Legality, RefusesAxesOutOfRangeWithoutOverflow) {
  Layout layout;
  layout.dp = layout.tp = layout.pp = layout.cp = int64_t{1} << 62;
  EXPECT_EQ(legality(layout, small_job()).rule, Rule::kAxisRange);
  layout.dp = layout.tp = layout.pp = layout.cp = kMaxAxis;
  EXPECT_EQ(legality(layout, small_job()).rule, Rule::kWorldSize);
  EXPECT_NE(legality(layout, small_job()).reason, "");
  layout = {};
  layout.dp = 0;
  EXPECT_EQ(legality(layout, small_job()).rule, Rule::kAxisRange);
}

TEST(Legality, WantsZero3ForHybridSharding) {
  Layout layout;
  layout.dp = 64;
  layout.hsdp = 8;
  EXPECT_EQ(legality(layout, small_job()).reason, "hsdp 8 is ZeRO-3 inside groups, the layout has ZeRO-1");
}

RC_GTEST_PROP(Legality, OfAnyLayoutHasAReasonExactlyWhenItIsNotLegal, ()) {
  const Layout layout = any_layout();
  spec::Job job = small_job();
  if (*rc::gen::arbitrary<bool>()) job.num_gpus = layout.world_size();
  const Legality verdict = legality(layout, job);
  RC_ASSERT(verdict.legal == is_legal(layout, job));
  RC_ASSERT(verdict.legal == verdict.reason.empty());
}

}  // namespace
}  // namespace layline::layout
