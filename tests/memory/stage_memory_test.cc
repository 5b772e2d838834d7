#include "layline/memory/stage_memory.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layline/memory/parameters.h"
#include "tests/support/jobs.h"

namespace layline::memory {
namespace {

using test::make_job;

StageMemory only_stage(const spec::Job& job, const layout::Layout& layout) {
  std::vector<StageGroup> groups;
  group_stages(layout, job.model.num_layers, {}, groups);
  const spec::Coefficients k;
  const LayerActivations layer = layer_activations(job, k, layer_shape(layout, job.cluster.gpus_per_node));
  return stage_memory(job, k, layout, groups.front(), layer, job.global_batch / (layout.dp * layout.mb));
}

TEST(Parameters, OfAllStagesAddUpToTheModel) {
  for (const char* name : {"llama-13b", "llama-65b", "llama-3.1-8b", "qwen2.5-7b"}) {
    const spec::Model model = spec::get_model(name);
    layout::Layout layout;
    layout.pp = 4;
    std::vector<StageGroup> groups;
    group_stages(layout, model.num_layers, {}, groups);
    double parameters = 0;
    for (const StageGroup& group : groups) {
      parameters += static_cast<double>(group.num_ranks) * stage_parameters(model, 1, group);
    }
    EXPECT_DOUBLE_EQ(parameters, static_cast<double>(model.num_parameters())) << name;
  }
}

TEST(Parameters, TiedHeadIsASecondCopyOnlyOnAnotherStage) {
  const spec::Model model = spec::get_model("llama-3.2-1b");
  ASSERT_TRUE(model.tied_embeddings);
  const StageGroup whole{0, 1, model.num_layers, true, true};
  EXPECT_DOUBLE_EQ(stage_parameters(model, 1, whole), static_cast<double>(model.num_parameters()));
  const StageGroup first{0, 1, 8, true, false}, last{1, 1, 8, false, true};
  EXPECT_DOUBLE_EQ(stage_parameters(model, 1, first) + stage_parameters(model, 1, last),
                   static_cast<double>(model.num_parameters()) + static_cast<double>(model.vocab * model.hidden));
}

TEST(Parameters, KeyValueHeadsAreReplicatedBeyondTheirNumber) {
  const spec::Model model = spec::get_model("llama-3.1-8b");  // 8 KV heads of 128
  EXPECT_DOUBLE_EQ(kv_width_per_rank(model, 1), 1024);
  EXPECT_DOUBLE_EQ(kv_width_per_rank(model, 8), 128);
  EXPECT_DOUBLE_EQ(kv_width_per_rank(model, 32), 128);
}

TEST(Parameters, VocabularyIsPaddedToTensorParallelism) {
  const spec::Model model = spec::get_model("gpt-1.7b");
  spec::Model odd = model;
  odd.vocab = 50257;
  EXPECT_DOUBLE_EQ(padded_vocab(odd, 8), 50264);
}

// Eighteen bytes a parameter without ZeRO, 6 + 12/dp with the distributed optimizer (Megatron-Core's documentation).
TEST(StageMemory, MegatronKeepsEighteenBytesAParameter) {
  spec::Job job = make_job({.engine = "megatron-core"});
  layout::Layout layout = test::layout_of(job, "dp64 tp1 pp1 mb1 zero0");
  const double n = static_cast<double>(job.model.num_parameters());
  StageMemory memory = only_stage(job, layout);
  EXPECT_NEAR((memory[Term::kWeights] + memory[Term::kGradients] + memory[Term::kOptimizer]) / n, 18, 1e-9);
  layout.zero = 1;
  memory = only_stage(job, layout);
  EXPECT_NEAR((memory[Term::kWeights] + memory[Term::kGradients] + memory[Term::kOptimizer]) / n, 6 + 12.0 / 64, 1e-9);
}

RC_GTEST_PROP(StageMemory, GrowsWithTheMicroBatchAndShrinksWithEveryZeroStage, ()) {
  spec::Job job = make_job({.model = "llama-3.1-8b", .engine = "torchtitan"});
  layout::Layout layout;
  layout.dp = 64;
  layout.tp = *rc::gen::element(1, 2, 4, 8);
  layout.sp = layout.tp > 1 && *rc::gen::arbitrary<bool>();
  layout.zero = *rc::gen::inRange(0, 3);
  layout.mb = *rc::gen::inRange<int64_t>(1, 8);
  const double before = only_stage(job, layout).total();
  layout::Layout larger = layout;
  ++larger.mb;
  RC_ASSERT(only_stage(job, larger).total() >= before);  // equal where the optimizer step is the peak
  layout::Layout sharded = layout;
  ++sharded.zero;
  const double after = only_stage(job, sharded).total() - only_stage(job, sharded)[Term::kCommunication];
  RC_ASSERT(after <= before);
}

TEST(StageMemory, CheckpointingAndSequenceParallelismKeepLess) {
  const spec::Job job = make_job({});
  const auto activations = [&](const char* text) {
    return only_stage(job, test::layout_of(job, text))[Term::kActivations];
  };
  EXPECT_LT(activations("tp2 mb1 ckpt=full"), 0.2 * activations("tp2 mb1"));
  EXPECT_LT(activations("tp2 mb1 sp"), activations("tp2 mb1"));
  EXPECT_LT(activations("tp2 mb1"), activations("tp2 mb1 norm=unfused"));
  EXPECT_LT(activations("tp2 mb1"), activations("tp2 mb1 attn=unfused"));
}

TEST(StageMemory, FirstStageHoldsOneMicroBatchForEachStageBehindIt) {
  const spec::Job job = make_job({});
  const layout::Layout layout = test::layout_of(job, "tp1 pp4 mb1");
  std::vector<StageGroup> groups;
  group_stages(layout, job.model.num_layers, {}, groups);
  const spec::Coefficients k;
  const LayerActivations layer = layer_activations(job, k, layer_shape(layout, job.cluster.gpus_per_node));
  for (const StageGroup& group : groups) {
    const StageMemory memory = stage_memory(job, k, layout, group, layer, 128);
    const double expected = static_cast<double>((4 - group.first_rank) * group.num_layers) * layer.plain_bytes;
    EXPECT_NEAR(memory[Term::kActivations], expected, 1e-6 * expected);
  }
}

}  // namespace
}  // namespace layline::memory
