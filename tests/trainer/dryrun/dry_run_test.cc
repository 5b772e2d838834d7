// Dry runs against the same steps with contents, for every kind of layout.
#include "layline/trainer/dryrun/dry_run.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "real_run.h"

namespace layline::trainer::dryrun {
namespace {

// Each axis alone, and what changes together with it.
const std::vector<std::string> kAxes = {
    "mb1",     "mb4",        "dp2 mb2",    "dp4 mb1",        "dp2 mb2 zero0",       "tp2 mb2",
    "tp4 mb2", "tp2 mb2 sp", "tp4 mb1 sp", "dp2 tp2 mb1 sp", "dp2 tp2 mb1 sp zero0"};
const std::vector<std::string> kPipelines = {
    "pp2 mb1",          "pp4 mb1",          "pp2 mb4",     "pp2 mb1 sched=gpipe", "pp4 mb2 sched=gpipe",
    "pp2 mb1 sched=zb", "pp4 mb1 sched=zb", "pp2 vp2 mb1", "tp2 pp2 mb1 sp",      "dp2 tp2 pp2 mb1 sp",
    "pp2 mb1 split=3,1"};
const std::vector<std::string> kRecomputation = {"mb2 ckpt=selective",        "mb2 ckpt=full",
                                                 "mb2 ckpt=full:1",           "pp2 mb1 ckpt=full:1",
                                                 "pp2 vp2 mb2 ckpt=full",     "tp2 mb2 sp ckpt=selective",
                                                 "tp2 mb2 sp ckpt=full",      "pp2 mb1 sched=zb ckpt=selective",
                                                 "pp2 mb1 sched=zb ckpt=full"};
const std::vector<std::string> kKernels = {
    "mb2 attn=unfused", "mb2 attn=unfused ckpt=selective", "tp2 mb2 attn=unfused",
    "mb2 norm=unfused", "mb2 norm=unfused ckpt=selective", "tp2 mb2 sp norm=unfused"};

// Numbers that ranks exchange in main memory: a few bytes a rank of the group.
constexpr int64_t kExchanged = 128;

void expect_same_bytes(const Sizes& sizes, const std::string& layout) {
  const loop::TrainingJob job = job_of(sizes, layout);
  for (const StageBytes& stage : dry_run(job).stages) {
    EXPECT_NEAR(stage.peak_bytes, real_peak_bytes(job, stage.stage), kExchanged) << layout << " stage " << stage.stage;
    EXPECT_EQ(std::accumulate(stage.bytes.begin(), stage.bytes.end(), int64_t{0}), stage.peak_bytes) << layout;
  }
}

class DryRunOf : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_P(DryRunOf, TakesTheBytesOfARealStepInBf16) {
  for (const std::string& layout : GetParam()) expect_same_bytes({}, layout);
}

TEST_P(DryRunOf, TakesTheBytesOfARealStepInFp32) {
  for (const std::string& layout : GetParam()) expect_same_bytes({.dtype = at::kFloat}, layout);
}

TEST_P(DryRunOf, TakesTheBytesOfARealStepWithTiedEmbeddingsAndFewKeyValueHeads) {
  for (const std::string& layout : GetParam())
    expect_same_bytes({.num_kv_heads = 2, .tied = true, .vocab = 97}, layout);
}

INSTANTIATE_TEST_SUITE_P(Axes, DryRunOf, testing::Values(kAxes));
INSTANTIATE_TEST_SUITE_P(Pipelines, DryRunOf, testing::Values(kPipelines));
INSTANTIATE_TEST_SUITE_P(Recomputation, DryRunOf, testing::Values(kRecomputation));
INSTANTIATE_TEST_SUITE_P(Kernels, DryRunOf, testing::Values(kKernels));

TEST(DryRun, TakesTheBytesOfARealStepOnTwoThreads) {
  at::set_num_threads(2);
  for (const char* layout : {"mb2", "tp2 mb2 sp", "pp2 mb1"}) expect_same_bytes({}, layout);
}

TEST(DryRun, RunsOneOfTheStagesThatAreAlike) {
  const DryRun gpipe = dry_run(job_of({}, "pp4 mb1 sched=gpipe"));
  ASSERT_EQ(gpipe.stages.size(), 4u);
  EXPECT_EQ(gpipe.stages[2].run_as, 1);
  EXPECT_EQ(gpipe.stages[2].stage, 2);
  EXPECT_EQ(gpipe.stages[2].peak_bytes, gpipe.stages[1].peak_bytes);
  EXPECT_EQ(gpipe.stages[3].run_as, 3);
  for (const StageBytes& stage : dry_run(job_of({}, "pp4 mb1")).stages) EXPECT_EQ(stage.run_as, stage.stage);
}

TEST(DryRun, NamesWhatIsKeptAndWhatIsThereForAMoment) {
  const DryRun run = dry_run(job_of({}, "pp2 mb1"));
  const auto bytes = [&](size_t stage, memory::Term term) {
    return run.stages[stage].bytes[static_cast<size_t>(term)];
  };
  const int64_t layer = 64 * (4 * 64 + 3 * 96) + 2 * 64, table = 500 * 64;
  // Buckets are padded to 64 bytes.
  EXPECT_NEAR(bytes(0, memory::Term::kWeights), 2 * (2 * layer + table), 256);
  EXPECT_NEAR(bytes(0, memory::Term::kGradients), 4 * (2 * layer + table), 512);
  EXPECT_NEAR(bytes(0, memory::Term::kOptimizer), 12 * (2 * layer + table), 1536);
  // Two micro-batches are in flight, and on the last stage one; there the head keeps its input, too.
  EXPECT_GT(bytes(0, memory::Term::kActivations), bytes(1, memory::Term::kActivations) * 3 / 2);
  EXPECT_LT(bytes(0, memory::Term::kActivations), bytes(1, memory::Term::kActivations) * 2);
  EXPECT_EQ(bytes(0, memory::Term::kLogits), 0);
  EXPECT_GT(bytes(1, memory::Term::kLogits), 64 * 500 * 2);
  EXPECT_EQ(describe(run.stages[0].peak_moment, 1).rfind("backward of micro-batch ", 0), 0u);
}

TEST(DryRun, ReplicasChangeNothingButPaddingAndCommunication) {
  const StageBytes few = dry_run(job_of({.global_batch = 16}, "dp2 tp2 mb1 sp zero0")).stages[0];
  const StageBytes many = dry_run(job_of({.global_batch = 4096}, "dp512 tp2 mb1 sp zero0")).stages[0];
  using memory::Term;
  const auto bytes = [](const StageBytes& stage, Term term) { return stage.bytes[static_cast<size_t>(term)]; };
  for (const Term term : {Term::kActivations, Term::kTransient, Term::kLogits, Term::kPipeline}) {
    EXPECT_EQ(bytes(many, term), bytes(few, term)) << memory::kTermNames[static_cast<size_t>(term)];
  }
  EXPECT_EQ(bytes(many, Term::kBuffers), bytes(few, Term::kBuffers));
  // Each of the buckets is padded to a multiple of 64 bytes a replica.
  const int64_t num_buckets = 4 * 2 + 3, padding = num_buckets * 512 * 64;
  EXPECT_GT(bytes(many, Term::kWeights), bytes(few, Term::kWeights));
  EXPECT_LT(bytes(many, Term::kWeights), bytes(few, Term::kWeights) + padding);
}

}  // namespace
}  // namespace layline::trainer::dryrun
