#include "layline/schedule/makespan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "shapes.h"

namespace layline::schedule {
namespace {

double simulated(ScheduleKind kind, const PipelineShape& shape, const StageTimes& times, const Transfer& transfer) {
  return simulate(make_schedule(kind, shape), times, transfer).makespan_seconds;
}

void expect_agreement(const Makespan& span, double real) {
  const double slack = 1e-9 * (1 + real);
  if (span.exact) {
    RC_ASSERT(std::abs(span.estimate_seconds - real) <= slack);
    RC_ASSERT(span.lower_seconds == span.upper_seconds);
  }
  RC_ASSERT(span.lower_seconds <= real + slack);
  RC_ASSERT(span.upper_seconds >= real - slack);
  RC_ASSERT(span.lower_seconds <= span.estimate_seconds && span.estimate_seconds <= span.upper_seconds);
}

Transfer any_transfer() {
  Transfer transfer;
  if (*rc::gen::arbitrary<bool>()) transfer.seconds = any_seconds() / *rc::gen::element(1, 10, 100);
  transfer.mode = *rc::gen::element(Transfers::kOverlapped, Transfers::kExposed);
  return transfer;
}

RC_GTEST_PROP(Makespan, HoldsTheSimulationOfAnyStages, ()) {
  const auto [kind, shape] = any_shape();
  const StageTimes times = any_times(shape.pp * shape.vp);
  const Transfer transfer = any_transfer();
  expect_agreement(makespan(kind, shape, times, transfer), simulated(kind, shape, times, transfer));
}

RC_GTEST_PROP(Makespan, HoldsTheSimulationOfStagesThatAreAlmostEqual, ()) {
  const auto [kind, shape] = any_shape();
  StageTimes times = equal_stages(shape.pp * shape.vp, any_time());
  times.front().forward *= 1 + any_seconds() / 20;
  times.back().backward *= 1 + any_seconds() / 20;
  const Transfer transfer = any_transfer();
  expect_agreement(makespan(kind, shape, times, transfer), simulated(kind, shape, times, transfer));
}

RC_GTEST_PROP(Makespan, OfRunsIsThatOfTheirStages, ()) {
  auto [kind, shape] = any_shape();
  std::vector<StageRun> runs;
  StageTimes times;
  for (int64_t left = shape.pp * shape.vp; left > 0; left -= runs.back().num_stages) {
    runs.push_back({any_time(), *rc::gen::inRange<int64_t>(1, left + 1)});
    times.insert(times.end(), runs.back().num_stages, runs.back().time);
  }
  const Transfer transfer = any_transfer();
  const Makespan grouped = makespan(kind, shape, runs, transfer), single = makespan(kind, shape, times, transfer);
  const double slack = 1e-9 * (1 + single.upper_seconds);
  RC_ASSERT(std::abs(grouped.lower_seconds - single.lower_seconds) <= slack);
  RC_ASSERT(std::abs(grouped.upper_seconds - single.upper_seconds) <= slack);
  RC_ASSERT(grouped.exact == single.exact);
}

RC_GTEST_PROP(Makespan, IsExactForGpipeAndForOneFOneBWithoutMessages, ()) {
  auto [kind, shape] = any_shape();
  kind = *rc::gen::element(ScheduleKind::kGpipe, ScheduleKind::kOneFOneB);
  shape.vp = 1;
  RC_ASSERT(makespan(kind, shape, any_times(shape.pp)).exact);
}

RC_GTEST_PROP(Makespan, IsExactForEqualStages, ()) {
  const auto [kind, shape] = any_shape();
  StageTime time = any_time();
  if (kind == ScheduleKind::kZeroBubble) {
    RC_PRE(shape.micro_batches >= shape.pp);
    time.weight = std::min(time.weight, time.backward / 2);
  }
  const StageTimes times = equal_stages(shape.pp * shape.vp, time);
  const Makespan span = makespan(kind, shape, times);
  RC_ASSERT(span.exact);
  expect_agreement(span, simulated(kind, shape, times, {}));
}

TEST(Makespan, OfEqualStagesHasTheBubbleOfTheTextbook) {
  const StageTime time{1, 2, 1};
  const StageRun four[] = {{time, 4}};
  const PipelineShape shape{.pp = 4, .micro_batches = 8};
  EXPECT_DOUBLE_EQ(makespan(ScheduleKind::kOneFOneB, shape, four).estimate_seconds, (8 + 3) * 3);
  EXPECT_DOUBLE_EQ(makespan(ScheduleKind::kGpipe, shape, four).estimate_seconds, (8 + 3) * 3);
  EXPECT_DOUBLE_EQ(makespan(ScheduleKind::kZeroBubble, shape, four).estimate_seconds, 8 * 3 + 3);
  const StageRun eight[] = {{{0.5, 1, 0.5}, 8}};
  EXPECT_DOUBLE_EQ(makespan(ScheduleKind::kInterleaved, {.pp = 4, .vp = 2, .micro_batches = 8}, eight).estimate_seconds,
                   8 * 3 + 3 * 1.5);
}

TEST(Makespan, OfOneFOneBCanExceedTheSumAndTheSlowestStageOnly) {
  // Stage 0 is slow forward, stage 1 backward, both take 10 in all: the usual formula says 20 + 9·10 + …
  const StageTimes times = {{1, 1, 0}, {9, 1, 0}, {1, 9, 0}, {1, 1, 0}};
  const double usual = 24 + 19 * 10;
  EXPECT_GT(makespan(ScheduleKind::kOneFOneB, {.pp = 4, .micro_batches = 20}, times).estimate_seconds, usual);
}

TEST(Makespan, DoesNotGrowWithMicroBatchesInCost) {
  const StageRun runs[] = {{{1, 2, 1}, 1}, {{1.1, 2, 1}, 1'000}, {{1, 3, 1}, 1}};
  const Makespan span = makespan(ScheduleKind::kOneFOneB, {.pp = 1'002, .micro_batches = 1'000'000'000}, runs);
  EXPECT_TRUE(span.exact);
  EXPECT_NEAR(span.estimate_seconds, 4e9, 1e5);
}

}  // namespace
}  // namespace layline::schedule
