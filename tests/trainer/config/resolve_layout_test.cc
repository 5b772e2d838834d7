#include "layline/trainer/config/resolve_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/search/search.h"
#include "tests/trainer/config/runs.h"

namespace layline::trainer::config::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ResolvedLayout resolve(const std::vector<std::string>& overrides, int64_t world_size) {
  return resolve_layout(parse(kSmallest, overrides), world_size);
}

TEST(ResolveLayout, WrittenLayoutsAreTakenAsTheyAre) {
  const ResolvedLayout resolved = resolve({"layout=tp2 mb4 sp"}, 4);
  EXPECT_EQ(resolved.text, "dp2 tp2 pp1 mb4 sp");
  EXPECT_EQ(resolved.how, "as written");
  EXPECT_EQ(resolved.layout.dp, 2);
  EXPECT_TRUE(resolved.layout.sp);
  EXPECT_EQ(resolved.job.engine.name, "layline");
  EXPECT_EQ(resolved.job.num_gpus, 4);
  EXPECT_EQ(resolved.job.global_batch, 32);
  EXPECT_EQ(resolved.job.sequence_length, 512);
}

TEST(ResolveLayout, MistakesGiveTheReason) {
  const struct {
    const char* layout;
    int64_t world_size;
    const char* message;
  } table[] = {
      {"tp4 mb1", 4, "--set layout=tp4 mb1: $.layout: illegal layout \"tp4 mb1\": tp 4 does not divide 6 heads"},
      {"dp2 tp2 mb1", 8, "it is for 4 ranks, and 8 are started; start 4, or leave dp out"},
      {"dp2 tp2 mb1", 1, "it is for 4 ranks, and 1 are started"},
      {"pp16 mb1", 16, "the model has 8 layers"},
      {"mb5", 2, "32"},
      {"tq2", 2, "--set layout=tq2: $.layout: "},
      {"tp3", 2, "--set layout=tp3: $.layout: "},
  };
  for (const auto& row : table) {
    const std::string layout = std::string("layout=") + row.layout;
    EXPECT_THAT(error_of([&] { resolve({layout}, row.world_size); }), HasSubstr(row.message)) << row.layout;
  }
  EXPECT_THAT(error_of([] { resolve({}, 0); }), StartsWith("ranks: found 0"));
}

TEST(ResolveLayout, AutoIsThePlannersFirst) {
  for (const int64_t world_size : {1, 2, 3, 4, 6, 8, 16, 64}) {
    const RunConfig config = parse(kSmallest, {"global_batch=192"});
    const ResolvedLayout resolved = resolve_layout(config, world_size);
    EXPECT_EQ(resolved.layout.world_size(), world_size);
    EXPECT_TRUE(layout::is_legal(resolved.layout, resolved.job)) << resolved.text;
    EXPECT_THAT(resolved.how, StartsWith("the planner's first of ")) << world_size;
    const search::Plan plan = search::find_plan(resolved.job, {.fix = {}, .top = 1});
    EXPECT_EQ(plan.best.front().layout, resolved.layout);
    EXPECT_EQ(resolve_layout(config, world_size).text, resolved.text);
  }
}

TEST(ResolveLayout, AutoStaysWithinTheMemoryLimit) {
  const ResolvedLayout free = resolve({}, 4);
  const Prediction whole = predict(free.job, free.layout);
  const double peak = *std::max_element(whole.memory_bytes_by_stage.begin(), whole.memory_bytes_by_stage.end());
  const auto limit = "memory_limit_bytes=" + std::to_string(static_cast<int64_t>(0.9 * peak));
  const ResolvedLayout limited = resolve({limit}, 4);
  EXPECT_NE(limited.text, free.text);
  const Prediction less = predict(limited.job, limited.layout);
  for (const double bytes : less.memory_bytes_by_stage) EXPECT_LE(bytes, 0.9 * peak);
  EXPECT_THAT(error_of([] { resolve({"memory_limit_bytes=1000000"}, 4); }), HasSubstr("$.layout: no layout fits in"));
}

TEST(ResolveLayout, NothingLegalGivesTheReason) {
  EXPECT_THAT(error_of([] { resolve({"global_batch=1", "sequence_length=511"}, 11); }),
              HasSubstr("no layout is legal on 11 ranks"));
}

TEST(ResolveLayout, TheClusterIsTheRunsOwn) {
  EXPECT_EQ(resolve({"cluster=h200-141gb"}, 8).job.cluster.name, "h200-141gb");
  EXPECT_EQ(resolve({}, 8).job.cluster.gpu.name, "cpu-avx512-bf16");
  EXPECT_NO_THROW(resolve({"global_batch=96"}, 96));  // on the default cluster any number of ranks is one machine
  EXPECT_THAT(error_of([] { resolve({"cluster=h200"}, 12); }),
              StartsWith("--set cluster=h200: $.cluster: 12 GPUs are neither"));
  EXPECT_THAT(error_of([] { resolve({"cluster=h200-141g"}, 8); }), HasSubstr("did you mean \"h200-141gb\"?"));
  EXPECT_THAT(error_of([] { resolve({"cluster=h2000"}, 8); }),
              StartsWith("--set cluster=h2000: $.cluster: no cluster"));
  EXPECT_THAT(error_of([] { resolve({"device=cuda"}, 8); }), StartsWith("run.json: $.cluster: is missing"));
}

TEST(ResolveLayout, UtilizationNeedsAPeakThatIsKnown) {
  EXPECT_FALSE(model_flops_utilization(resolve({}, 4), 1.0));
  EXPECT_FALSE(model_flops_utilization(resolve({"cluster=cpu", "precision=fp64"}, 4), 1.0));
  const ResolvedLayout resolved = resolve({"cluster=cpu"}, 4);
  const double flops = resolved.job.model.flops_per_token(512) * 32 * 512;
  EXPECT_NEAR(*model_flops_utilization(resolved, 2.0), flops / (4 * 455e9 * 2.0), 1e-12);
  EXPECT_NEAR(*model_flops_utilization(resolve({"cluster=cpu", "precision=fp32"}, 4), 2.0), flops / (4 * 227e9 * 2.0),
              1e-12);
}

// Vendors also state twice as much, for matrices of which half is zero.
TEST(ResolveLayout, UtilizationIsOfTheDensePeak) {
  for (const auto& [cluster, peak] :
       {std::pair{"h100-80gb", 989.4e12}, {"h200-141gb", 989.4e12}, {"a100-80gb", 312e12}}) {
    const ResolvedLayout resolved = resolve({std::string("cluster=") + cluster}, 8);
    EXPECT_NEAR(*resolved.peak_flops_per_second, peak, 0.001 * peak) << cluster;
    const double flops = resolved.job.model.flops_per_token(512) * 32 * 512;
    EXPECT_NEAR(*model_flops_utilization(resolved, 1.0), flops / (8 * peak), 0.001 * flops / (8 * peak)) << cluster;
  }
}

TEST(Predict, GivesAStepTimeAndEachStagesBytes) {
  const ResolvedLayout resolved = resolve({"layout=pp4 mb1"}, 4);
  const Prediction prediction = predict(resolved.job, resolved.layout);
  EXPECT_GT(prediction.step_seconds, 0.1);
  EXPECT_LT(prediction.step_seconds, 100);
  ASSERT_EQ(prediction.memory_bytes_by_stage.size(), 4u);
  for (const double bytes : prediction.memory_bytes_by_stage) EXPECT_GT(bytes, 1e6);
  EXPECT_FALSE(prediction.is_calibrated);
  EXPECT_GT(prediction.relative_error_bar, 0);
}

}  // namespace
}  // namespace layline::trainer::config::test
