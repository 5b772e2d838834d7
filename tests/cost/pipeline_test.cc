// The pipeline times that prices are made of, against the simulation of the very instruction lists.
#include "layline/cost/pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layline/schedule/simulate.h"

namespace layline::cost {
namespace {

double any_seconds() { return *rc::gen::inRange(1, 1000) / 97.0; }

double simulated(spec::ScheduleKind kind, const schedule::PipelineShape& shape, const schedule::StageTimes& times) {
  return schedule::simulate(schedule::make_schedule(kind, shape), times).makespan_seconds;
}

RC_GTEST_PROP(PipelineSeconds, AreTheSimulationsForOneFOneBAndGpipeWithUnequalStages, ()) {
  const auto kind = *rc::gen::element(spec::ScheduleKind::kOneFOneB, spec::ScheduleKind::kGpipe);
  const int64_t pp = *rc::gen::inRange<int64_t>(1, 9), m = *rc::gen::inRange<int64_t>(1, 40);
  PipelineRuns runs;
  schedule::StageTimes times;
  for (int64_t i = 0; i < pp; ++i) {
    times.push_back({any_seconds(), any_seconds(), 0});
    runs.push_back({times.back(), 1});
  }
  const double expected = simulated(kind, {.pp = pp, .micro_batches = m}, times);
  RC_ASSERT(std::abs(pipeline_seconds(kind, pp, 1, m, runs) - expected) <= 1e-9 * expected);
}

RC_GTEST_PROP(PipelineSeconds, AreTheSimulationsForInterleavedWithEqualStages, ()) {
  const int64_t pp = *rc::gen::inRange<int64_t>(2, 7), vp = *rc::gen::inRange<int64_t>(2, 5);
  const int64_t m = pp * *rc::gen::inRange<int64_t>(1, 6);
  const schedule::StageTime chunk{any_seconds(), any_seconds(), 0};
  const double v = static_cast<double>(vp);
  const PipelineRuns runs = {{{chunk.forward * v, chunk.backward * v, 0}, pp}};
  const double expected = simulated(spec::ScheduleKind::kInterleaved, {.pp = pp, .vp = vp, .micro_batches = m},
                                    schedule::equal_stages(pp * vp, chunk));
  RC_ASSERT(std::abs(pipeline_seconds(spec::ScheduleKind::kInterleaved, pp, vp, m, runs) - expected) <=
            1e-9 * expected);
}

TEST(PipelineSeconds, ZeroBubbleTakesNoLongerThanOneFOneB) {
  const PipelineRuns runs = {{{1.0, 2.0, 1.0}, 4}};
  EXPECT_LT(pipeline_seconds(spec::ScheduleKind::kZeroBubble, 4, 1, 16, runs),
            pipeline_seconds(spec::ScheduleKind::kOneFOneB, 4, 1, 16, runs));
}

}  // namespace
}  // namespace layline::cost
