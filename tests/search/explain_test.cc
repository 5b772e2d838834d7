#include "layline/search/explain.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "layline/search/default_layout.h"
#include "tests/search/brute_force.h"
#include "tests/search/jobs.h"
#include "tests/support/jobs.h"

namespace layline::search {
namespace {

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

layout::Layout any_legal(const spec::Job& job) {
  const std::vector<layout::Layout> legal = legal_layouts(job, {});
  RC_PRE(!legal.empty());
  return *rc::gen::elementOf(legal);
}

RC_GTEST_PROP(Explain, LossesAddUpToTheStepWithoutTheIdeal, ()) {
  const spec::Job job = any_job();
  const Explanation e = explain(job, any_legal(job));
  const double step = e.priced.price.step_seconds;
  double lost = 0, points = 0;
  for (const Loss& loss : e.losses) {
    lost += loss.seconds;
    points += loss.mfu;
  }
  RC_ASSERT(is_near(lost + e.ideal_seconds, step));
  RC_ASSERT(is_near(points + e.mfu, 1.0));
  RC_ASSERT(is_near(std::accumulate(e.priced.price.seconds.begin(), e.priced.price.seconds.end(), 0.0), step));
  RC_ASSERT(std::is_sorted(e.losses.begin(), e.losses.end(),
                           [](const Loss& a, const Loss& b) { return a.seconds > b.seconds; }));
}

RC_GTEST_PROP(Explain, StagesTellThePriceAgain, ()) {
  const spec::Job job = any_job();
  const layout::Layout layout = any_legal(job);
  RC_LOG() << job.engine.name << " " << layout::to_text(layout);
  const Explanation e = explain(job, layout);
  RC_ASSERT(static_cast<int64_t>(e.stages.size()) == layout.pp);
  double most = 0;
  int64_t layers = 0;
  for (const cost::StagePrice& stage : e.stages) {
    most = std::max(most, stage.memory.total());
    layers += stage.group.num_layers;
  }
  RC_ASSERT(is_near(most, e.priced.price.peak_memory_bytes));
  RC_ASSERT(is_near(e.stages[e.fullest_stage].memory.total(), most));
  RC_ASSERT(layers == job.model.num_layers);
  // What the slowest stage does for its micro-batches is what the price counts as compute and traffic.
  using cost::Kind;
  const cost::StepPrice& price = e.priced.price;
  double along = 0;
  for (const Kind kind : {Kind::kGemm, Kind::kAttention, Kind::kMemoryBound, Kind::kLaunch, Kind::kRecompute,
                          Kind::kTensorParallel, Kind::kContextParallel, Kind::kPipelineSend}) {
    along += price[kind];
  }
  const cost::StagePrice& slowest = e.stages[e.slowest_stage];
  const double micro_batches = static_cast<double>(layout::num_micro_batches(layout, job));
  RC_ASSERT(is_near(along, micro_batches * (slowest.forward_seconds + slowest.backward_seconds)));
}

TEST(Explain, PeakIsThatOfALaterStageWhereWeightGradientsWait) {
  spec::Job job = test::make_job({.engine = "layline", .num_gpus = 8, .global_batch = 8, .sequence_length = 8192});
  job.model.num_layers = 7;
  job.model.vocab = 1000;
  const Explanation e = explain(job, test::layout_of(job, "tp2 pp4 mb1 ckpt=full sched=zb"));
  EXPECT_EQ(e.fullest_stage, 2U);
  EXPECT_DOUBLE_EQ(e.priced.price.peak_memory_bytes, e.stages[2].memory.total());
}

RC_GTEST_PROP(Explain, ComparesALayoutWithItselfAsTheSame, ()) {
  const spec::Job job = any_job();
  const Explanation e = explain(job, any_legal(job));
  const Comparison same = compare(e, e);
  RC_ASSERT(!same.seconds.empty());
  for (const Difference& row : same.seconds) RC_ASSERT(row.first == row.second);
  for (const Difference& row : same.bytes) RC_ASSERT(row.first == row.second);
}

TEST(Explain, ComparisonAddsUpToBothPrices) {
  const spec::Job job = test::make_job({});
  const Explanation a = explain(job, test::layout_of(job, "tp2 pp2 mb1 sp"));
  const Explanation b = explain(job, test::layout_of(job, "tp1 pp4 mb1"));
  double first = 0, second = 0;
  for (const Difference& row : compare(a, b).seconds) {
    first += row.first;
    second += row.second;
  }
  EXPECT_NEAR(first, a.priced.price.step_seconds, 1e-9);
  EXPECT_NEAR(second, b.priced.price.step_seconds, 1e-9);
}

TEST(Explain, GivesReasonsForTheFirstOfAPlan) {
  const spec::Job job = test::make_job({});
  EXPECT_FALSE(reasons_to_win(job, find_plan(job, {})).empty());
  EXPECT_TRUE(reasons_to_win(job, Plan{}).empty());
}

RC_GTEST_PROP(DefaultLayout, IsLegalWhereverItExists, ()) {
  const spec::Job job = any_job();
  cost::Pricer pricer(job);
  const std::optional<PricedLayout> start = default_layout(job, pricer);
  if (!start) return;
  RC_LOG() << job.engine.name << " " << layout::to_text(start->layout);
  RC_ASSERT(layout::is_legal(start->layout, job));
  RC_ASSERT(is_near(start->price.step_seconds, pricer.price(start->layout).step_seconds));
}

}  // namespace
}  // namespace layline::search
