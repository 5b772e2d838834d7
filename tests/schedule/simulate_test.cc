#include "layline/schedule/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "layline/schedule/check.h"
#include "layline/schedule/render.h"
#include "shapes.h"

namespace layline::schedule {
namespace {

using testing::ElementsAre;
using testing::Pair;

Timeline any_timeline(Transfers mode, double transfer_seconds) {
  auto [kind, shape] = any_shape();
  if (mode == Transfers::kGrouped || mode == Transfers::kBlocking) {
    shape.blocking_order = true;
    if (shape.vp > 1 && mode == Transfers::kBlocking) {
      kind = ScheduleKind::kOneFOneB;
      shape.vp = 1;
    }
    if (shape.vp > 1) shape.micro_batches = (shape.micro_batches + shape.pp - 1) / shape.pp * shape.pp;
  }
  return simulate(make_schedule(kind, shape), any_times(shape.pp * shape.vp), {transfer_seconds, mode});
}

RC_GTEST_PROP(Simulation, StartsNoInstructionBeforeWhatItNeedsHasEnded, ()) {
  const auto mode = static_cast<Transfers>(*rc::gen::inRange(0, 4));
  const double transfer_seconds = any_seconds() / 10;
  const Timeline line = any_timeline(mode, transfer_seconds);
  std::map<std::tuple<Op, int64_t, int64_t>, double> ends;  // op, micro-batch, virtual stage
  for (size_t rank = 0; rank < line.ranks.size(); ++rank) {
    double before = 0;
    for (const auto& [step, start, end] : line.ranks[rank].steps) {
      const bool same_group = is_message(step.op) && mode == Transfers::kGrouped;
      RC_ASSERT(same_group || start >= before);
      RC_ASSERT(end >= start);
      before = end;
      const Op op = step.op == Op::kBackwardInput ? Op::kBackward : step.op;
      ends[{op, step.micro_batch, step.chunk * line.pp + static_cast<int64_t>(rank)}] = end;
    }
  }
  const int64_t last = line.pp * line.vp - 1;
  for (size_t rank = 0; rank < line.ranks.size(); ++rank) {
    for (const auto& [step, start, end] : line.ranks[rank].steps) {
      const int64_t stage = step.chunk * line.pp + static_cast<int64_t>(rank);
      const int64_t i = step.micro_batch;
      const double wait = line.pp > 1 ? transfer_seconds : 0;
      const double slack = 1e-9 * (1 + start);
      if (step.op == Op::kForward && stage > 0) {
        RC_ASSERT(start + slack >= ends.at({Op::kForward, i, stage - 1}) + wait);
      }
      if ((step.op == Op::kBackward || step.op == Op::kBackwardInput) && stage < last) {
        RC_ASSERT(start + slack >= ends.at({Op::kBackward, i, stage + 1}) + wait);
      }
    }
  }
}

RC_GTEST_PROP(Simulation, NeverIsFasterWithDearerTransfers, ()) {
  auto [kind, shape] = any_shape();
  if (shape.vp > 1) shape.micro_batches = (shape.micro_batches + shape.pp - 1) / shape.pp * shape.pp;
  const StageTimes times = any_times(shape.pp * shape.vp);
  const double seconds = any_seconds() / 10;
  const auto span = [&](const Transfer& transfer, bool blocking = false) {
    shape.blocking_order = blocking;
    return simulate(make_schedule(kind, shape), times, transfer).makespan_seconds;
  };
  const double free = span({}), overlapped = span({seconds, Transfers::kOverlapped});
  const double exposed = span({seconds, Transfers::kExposed});
  RC_ASSERT(free <= overlapped + 1e-9);
  RC_ASSERT(overlapped <= exposed + 1e-9);
  RC_ASSERT(span({0, Transfers::kGrouped}, true) <= span({seconds, Transfers::kGrouped}, true) + 1e-9);
}

RC_GTEST_PROP(Simulation, CountsEachRanksTime, ()) {
  const Timeline line = any_timeline(Transfers::kOverlapped, any_seconds());
  for (const RankTimeline& rank : line.ranks) {
    RC_ASSERT(rank.idle_seconds >= -1e-9);
    const auto changes = activations_over_time(rank);
    int64_t peak = 0;
    for (const auto& [seconds, held] : changes) peak = std::max(peak, held);
    RC_ASSERT(peak == rank.peak_activations);
    RC_ASSERT(changes.back().second == 0);
    RC_ASSERT(
        std::is_sorted(changes.begin(), changes.end(), [](const auto& a, const auto& b) { return a.first < b.first; }));
  }
}

TEST(Simulation, OfTwoStagesIsAsOnPaper) {
  const Timeline line = simulate(make_schedule(ScheduleKind::kOneFOneB, {.pp = 2, .micro_batches = 2}),
                                 equal_stages(2, {1, 2, 0}), {0.5});
  EXPECT_DOUBLE_EQ(line.makespan_seconds, 10);  // 1 + 0.5 down, 3 + 3 on stage 1, 0.5 + 2 up
  EXPECT_DOUBLE_EQ(line.ranks[0].compute_seconds, 6);
  EXPECT_DOUBLE_EQ(line.ranks[0].idle_seconds, 4);
  EXPECT_DOUBLE_EQ(line.bubble_fraction(), 0.4);
  EXPECT_THAT(activations_over_time(line.ranks[1]),
              ElementsAre(Pair(1.5, 1), Pair(4.5, 0), Pair(4.5, 1), Pair(7.5, 0)));
}

TEST(Picture, HasARowForEachRankAndALetterForEachSlot) {
  const Timeline line =
      simulate(make_schedule(ScheduleKind::kZeroBubble, {.pp = 2, .micro_batches = 3}), equal_stages(2, {1, 2, 1}));
  // 10 seconds in 20 − 8 columns would be uneven: 28 columns give 20 slots of half a second.
  EXPECT_DOUBLE_EQ(line.makespan_seconds, 10);
  EXPECT_EQ(to_picture(line, 28),
            "rank 0  FFFF..BBWWFFBBWWBBWW\n"
            "rank 1  ..FFBBFFBBWWFFBBWWWW\n");
}

RC_GTEST_PROP(Picture, IsNeverWiderThanAsked, ()) {
  const Timeline line = any_timeline(Transfers::kOverlapped, 0.1);
  const int width = *rc::gen::inRange(20, 150);
  std::istringstream rows(to_picture(line, width));
  int64_t num_rows = 0;
  for (std::string row; std::getline(rows, row); ++num_rows) RC_ASSERT(static_cast<int>(row.size()) == width);
  RC_ASSERT(num_rows == line.pp);
}

TEST(ChromeTrace, HasEveryInstructionAndTheActivations) {
  const Timeline line = simulate(make_schedule(ScheduleKind::kInterleaved, {.pp = 2, .vp = 2, .micro_batches = 2}),
                                 equal_stages(4, {1, 2, 0}));
  const auto trace = nlohmann::json::parse(to_chrome_trace(line));
  std::map<std::string, int> phases;
  for (const auto& event : trace.at("traceEvents")) ++phases[event.at("ph").get<std::string>()];
  size_t num_steps = 0;
  for (const RankTimeline& rank : line.ranks) num_steps += rank.steps.size();
  EXPECT_EQ(phases["X"], static_cast<int>(num_steps));
  EXPECT_EQ(phases["M"], 2);
  EXPECT_EQ(phases["C"], 16);  // two for each of 2 micro-batches × 4 virtual stages
}

}  // namespace
}  // namespace layline::schedule
