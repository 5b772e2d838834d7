// Engines whose working set is followed operator by operator.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "layline/memory/activations.h"
#include "layline/memory/buckets.h"
#include "layline/memory/stage_moments.h"
#include "layline/schedule/schedule.h"
#include "tests/support/jobs.h"

namespace layline::memory {
namespace {

using schedule::Op;

// The most over all computations of the list, one by one.
double walked_peak(const StageOnList& stage) {
  const auto passes = [&](int64_t chunk) -> const ChunkPasses& {
    return stage.runs[static_cast<size_t>(chunk)].passes;
  };
  const auto list =
      schedule::make_schedule(stage.schedule, {.pp = stage.pp, .vp = stage.vp, .micro_batches = stage.micro_batches});
  double kept = 0, peak = 0;
  for (const schedule::Instruction& step : list.ranks[static_cast<size_t>(stage.rank)]) {
    if (schedule::is_message(step.op)) continue;
    const ChunkPasses& own = passes(step.chunk);
    switch (step.op) {
      case Op::kForward:
        peak = std::max(peak, kept + own.forward.total());
        kept += own.kept;
        break;
      case Op::kBackwardWeight:
        peak = std::max(peak, kept - own.deferred + own.weights.total());
        kept -= own.deferred;
        break;
      default:
        peak = std::max(peak, kept - own.kept + own.backward.total());
        kept += (step.op == Op::kBackwardInput ? own.deferred : 0) - own.kept;
    }
  }
  EXPECT_NEAR(kept, 0, 1e-9);
  return peak;
}

RC_GTEST_PROP(StageMoments, AreTheMostOverAllComputationsOfTheList, ()) {
  using spec::ScheduleKind;
  StageOnList stage;
  stage.schedule = *rc::gen::element(ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kZeroBubble,
                                     ScheduleKind::kInterleaved);
  const bool is_interleaved = stage.schedule == ScheduleKind::kInterleaved;
  stage.pp = *rc::gen::inRange<int64_t>(is_interleaved ? 2 : 1, 7);
  stage.vp = is_interleaved ? *rc::gen::inRange<int64_t>(2, 6) : 1;
  stage.rank = *rc::gen::inRange<int64_t>(0, stage.pp);
  stage.micro_batches = *rc::gen::inRange<int64_t>(1, 12) * (is_interleaved ? stage.pp : 1);
  std::vector<ChunkRun> runs;
  const auto bytes = [] { return static_cast<double>(*rc::gen::inRange(1, 100)); };
  for (int64_t chunk = 0; chunk < stage.vp; ++chunk) {
    ChunkRun run{chunk, 1, {}};
    run.passes.kept = bytes();
    run.passes.deferred = bytes();
    run.passes.forward = {run.passes.kept, bytes(), 0};
    run.passes.backward = {run.passes.kept, bytes(), 0};
    run.passes.weights = {run.passes.deferred, bytes(), 0};
    runs.push_back(run);
  }
  stage.runs = runs;
  RC_ASSERT(peak_of_list(stage).total() == walked_peak(stage));
}

TEST(LayerPasses, KeepWhatTheBackwardPassOfALayerNeeds) {
  spec::Job job = test::make_job({.model = "llama-3.1-8b", .engine = "layline"});
  const LayerPass pass = layer_passes(job, {.mb = 2, .tp = 2}).plain;
  const double tokens = 2 * 2048, h = 4096, q = 2048, k = 512, f = 7168, heads = 16;
  EXPECT_DOUBLE_EQ(pass.kept, tokens * (2 * (4 * h + (q + 2 * k) + q + 3 * f) + 2 * 4 + 4 * heads));
  const LayerPass full =
      layer_passes(job, {.mb = 2, .tp = 2, .checkpointing = layout::Checkpointing::kFull}).recomputed;
  EXPECT_DOUBLE_EQ(full.kept, tokens * 2 * h);
  EXPECT_GT(full.backward, pass.kept);
}

TEST(LayerPasses, SequenceParallelismDividesWhatTensorParallelismDoesNot) {
  const spec::Job job = test::make_job({.model = "llama-3.1-8b", .engine = "layline"});
  const LayerPass whole = layer_passes(job, {.mb = 1, .tp = 4}).plain;
  const LayerPass parts = layer_passes(job, {.mb = 1, .tp = 4, .sp = true}).plain;
  const double hidden = 2048.0 * 4096 * 2, statistics = 2 * 2048 * 4;
  EXPECT_DOUBLE_EQ(whole.kept - parts.kept, (4 * hidden + statistics) * 3 / 4);
}

TEST(Buckets, ArePaddedSoThatAllReplicasHaveTheSameShare) {
  const spec::Job job = test::make_job({.model = "llama-tiny", .engine = "layline"});
  layout::Layout layout;
  layout.dp = 3;
  const Buckets one = buckets_of(job, layout, {.num_layers = 1});
  EXPECT_EQ(std::fmod(one.elements, 3 * 32), 0);
  const Buckets eight = buckets_of(job, layout, {.num_layers = 8, .has_embedding = true, .has_head = true});
  const double parameters = static_cast<double>(job.model.num_parameters());
  EXPECT_GE(eight.elements, parameters);
  EXPECT_LT(eight.elements, parameters + 10 * 4 * 32);
}

}  // namespace
}  // namespace layline::memory
