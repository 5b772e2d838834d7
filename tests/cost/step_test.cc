#include "layline/cost/step.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "layline/layout/legality.h"
#include "tests/support/jobs.h"

namespace layline::cost {
namespace {

using test::layout_of;
using test::make_job;

TEST(StepPrice, BreakdownAddsUpToTheStep) {
  const spec::Job job = make_job({});
  Pricer pricer(job);
  for (const char* text : {"tp1 pp1 mb1", "tp2 pp2 mb1 sp", "tp8 pp4 mb2 ckpt=full", "tp1 pp8 mb4 norm=unfused"}) {
    const StepPrice price = pricer.price(layout_of(job, text));
    const double sum = std::accumulate(price.seconds.begin(), price.seconds.end(), 0.0);
    EXPECT_DOUBLE_EQ(sum, price.step_seconds) << text;
    for (const double seconds : price.seconds) EXPECT_GE(seconds, 0) << text;
  }
}

TEST(StepPrice, NeverBeatsThePeak) {
  for (const char* engine : {"aleph-scaling", "megatron-core", "torchtitan", "layline"}) {
    const spec::Job job = make_job({.engine = engine});
    Pricer pricer(job);
    for (const char* text : {"tp1 pp1 mb1", "tp2 pp1 mb2", "tp4 pp1 mb4"}) {
      const double mfu = model_flops_utilization(job, pricer.price(layout_of(job, text)).step_seconds);
      EXPECT_GT(mfu, 0.05) << engine << " " << text;
      EXPECT_LT(mfu, 1) << engine << " " << text;
    }
  }
}

TEST(StepPrice, GrowsLinearlyWithTheGlobalBatchBeyondTheFixedParts) {
  const auto seconds = [](int64_t global_batch) {
    const spec::Job job = make_job({.global_batch = global_batch});
    return Pricer(job).price(layout_of(job, "tp2 pp2 mb1")).step_seconds;
  };
  const double first = seconds(4096) - seconds(2048), second = seconds(6144) - seconds(4096);
  EXPECT_NEAR(first, second, 1e-9 * first);
}

TEST(StepPrice, StagesOfAPricedLayoutSpanTheModel) {
  const spec::Job job = make_job({});
  Pricer pricer(job);
  const layout::Layout layout = layout_of(job, "tp1 pp8 mb1");
  const std::vector<StagePrice> stages = pricer.stages(layout);
  ASSERT_EQ(stages.size(), 8u);
  int64_t layers = 0;
  double peak = 0;
  for (const StagePrice& stage : stages) {
    layers += stage.group.num_layers;
    peak = std::max(peak, stage.memory.total());
  }
  EXPECT_EQ(layers, job.model.num_layers);
  EXPECT_DOUBLE_EQ(peak, pricer.price(layout).peak_memory_bytes);
  EXPECT_DOUBLE_EQ(peak, pricer.peak_memory_bytes(layout));
}

// Recomputation costs time and saves bytes; a better kernel saves both.
RC_GTEST_PROP(StepPrice, OrdersLayoutsThatDifferInOneThing, ()) {
  const spec::Job job = make_job({});
  Pricer pricer(job);
  layout::Layout layout;
  layout.tp = *rc::gen::element(1, 2, 4, 8);
  layout.pp = *rc::gen::element(1, 2, 4, 8);
  layout.dp = 64 / layout.tp / layout.pp;
  layout.mb = *rc::gen::element(1, 2, 4);
  layout.split = job.engine.default_split;
  RC_PRE(layout.dp >= 1 && layout::is_legal(layout, job));
  spec::Coefficients calm;
  calm.pressure_seconds = 0;
  Pricer plain(std::make_shared<const spec::Job>(job), calm);
  const StepPrice base = plain.price(layout);
  layout::Layout recomputed = layout;
  recomputed.checkpointing = layout::Checkpointing::kFull;
  RC_ASSERT(plain.price(recomputed).step_seconds > base.step_seconds);
  layout::Layout unfused = layout;
  unfused.norm = layout::NormKernel::kUnfused;
  RC_ASSERT(plain.price(unfused).step_seconds > base.step_seconds);
  RC_ASSERT(plain.price(unfused).peak_memory_bytes > base.peak_memory_bytes);
}

TEST(FitProbability, IsAHalfAtTheCapacityAndFallsWithUse) {
  spec::Job job = make_job({});
  const layout::Layout layout = layout_of(job, "tp1 pp1 mb1");
  job.cluster.gpu.memory_bytes = Pricer(job).peak_memory_bytes(layout);
  EXPECT_NEAR(Pricer(job).price(layout).fit_probability, 0.5, 1e-9);
  job.cluster.gpu.memory_bytes *= 1.3;
  EXPECT_GT(Pricer(job).price(layout).fit_probability, 0.95);
}

TEST(Mfu, IsPalmsFormula) {
  const spec::Job job = make_job({});
  const double tokens = 2048.0 * 2048.0;
  const double n = static_cast<double>(job.model.num_parameters());
  const double flops = tokens * (6 * n + 12.0 * 40 * 5120 * 2048);
  EXPECT_NEAR(model_flops_utilization(job, 26.54), flops / (26.54 * 64 * 312e12), 1e-12);
  EXPECT_NEAR(model_flops_utilization(job, 26.54), 0.7057, 0.002 * 0.7057);  // as published
}

}  // namespace
}  // namespace layline::cost
