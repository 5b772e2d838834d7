#include "layline/schedule/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "layline/schedule/in_flight.h"
#include "shapes.h"

namespace layline::schedule {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const Schedule& schedule, const CheckOptions& options = {}) {
  const auto violation = find_violation(schedule, options);
  return violation ? violation->text() : "";
}

RC_GTEST_PROP(Schedule, RunsEveryMicroBatchOnceWithoutDeadlockHoweverFewThereAre, ()) {
  const auto [kind, shape] = any_shape();
  const Schedule schedule = make_schedule(kind, shape);
  RC_ASSERT(error_of(schedule) == "");
  if (shape.vp == 1) RC_ASSERT(error_of(schedule, {.sends = SendMode::kGrouped}) == "");
}

RC_GTEST_PROP(Schedule, InBlockingOrderRunsWithSendsThatBlock, ()) {
  auto [kind, shape] = any_shape();
  shape.blocking_order = true;
  if (shape.vp > 1) shape.micro_batches = (shape.micro_batches + shape.pp - 1) / shape.pp * shape.pp;
  const Schedule schedule = make_schedule(kind, shape);
  RC_ASSERT(error_of(schedule) == "");
  RC_ASSERT(error_of(schedule, {.sends = SendMode::kGrouped}) == "");
  if (shape.vp == 1) RC_ASSERT(error_of(schedule, {.sends = SendMode::kBlocking}) == "");
}

RC_GTEST_PROP(Schedule, HoldsExactlyAsManyActivationsAsItsClosedFormSays, ()) {
  const auto [kind, shape] = any_shape();
  const Schedule schedule = make_schedule(kind, shape);
  for (int64_t rank = 0; rank < shape.pp; ++rank) {
    RC_ASSERT(peak_activations(schedule.ranks[rank]) ==
              max_in_flight(kind, shape.pp, shape.vp, rank, shape.micro_batches));
  }
}

// Breaks of a right list, all of which must be found.
Instruction& any_step(Schedule& schedule, int64_t& rank) {
  rank = *rc::gen::inRange<int64_t>(0, schedule.pp);
  auto& list = schedule.ranks[rank];
  return list[*rc::gen::inRange<size_t>(0, list.size())];
}

RC_GTEST_PROP(Checker, FindsAMissingInstruction, ()) {
  const auto [kind, shape] = any_shape();
  Schedule schedule = make_schedule(kind, shape);
  int64_t rank = 0;
  const Instruction& step = any_step(schedule, rank);
  const Instruction removed = step;
  auto& list = schedule.ranks[rank];
  list.erase(list.begin() + (&step - list.data()));
  const auto violation = find_violation(schedule);
  RC_ASSERT(violation.has_value());
  RC_ASSERT(violation->rank == rank);
  RC_ASSERT(violation->micro_batch == removed.micro_batch);
}

RC_GTEST_PROP(Checker, FindsADuplicatedInstruction, ()) {
  const auto [kind, shape] = any_shape();
  Schedule schedule = make_schedule(kind, shape);
  int64_t rank = 0;
  const Instruction step = any_step(schedule, rank);
  schedule.ranks[rank].push_back(step);
  const auto violation = find_violation(schedule);
  RC_ASSERT(violation.has_value());
  RC_ASSERT(violation->rank == rank && violation->micro_batch == step.micro_batch);
  RC_ASSERT(violation->reason == to_text(step) + " is there twice");
}

RC_GTEST_PROP(Checker, FindsAnotherMicroBatchOrChunkOrOperation, ()) {
  const auto [kind, shape] = any_shape();
  Schedule schedule = make_schedule(kind, shape);
  int64_t rank = 0;
  Instruction& step = any_step(schedule, rank);
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      step.micro_batch += *rc::gen::element(-1, 1);
      break;
    case 1:
      step.chunk += *rc::gen::element(-1, 1);
      break;
    default:
      step.op = static_cast<Op>((static_cast<int>(step.op) + *rc::gen::inRange(1, 8)) % 8);
  }
  const auto violation = find_violation(schedule);
  RC_ASSERT(violation.has_value());
  RC_ASSERT(violation->rank == rank);
}

RC_GTEST_PROP(Checker, FindsAComputationThatIsSwappedWithItsMessage, ()) {
  const auto [kind, shape] = any_shape();
  RC_PRE(shape.pp > 1);
  Schedule schedule = make_schedule(kind, shape);
  int64_t rank = 0;
  Instruction& step = any_step(schedule, rank);
  auto& list = schedule.ranks[rank];
  const size_t i = &step - list.data();
  RC_PRE(i + 1 < list.size());
  RC_PRE(list[i].micro_batch == list[i + 1].micro_batch && list[i].chunk == list[i + 1].chunk);
  RC_PRE(is_message(list[i].op) != is_message(list[i + 1].op));
  RC_PRE(list[i].op != Op::kBackwardWeight && list[i + 1].op != Op::kBackwardWeight);  // free to go after a send
  std::swap(list[i], list[i + 1]);
  const auto violation = find_violation(schedule);
  RC_ASSERT(violation.has_value());
  RC_ASSERT(violation->rank == rank && violation->micro_batch == list[i].micro_batch);
}

TEST(Checker, NamesRankMicroBatchAndReason) {
  Schedule schedule = make_schedule(ScheduleKind::kOneFOneB, {.pp = 2, .micro_batches = 4});
  auto& list = schedule.ranks[1];
  std::swap(list[0], list[1]);
  EXPECT_EQ(
      error_of(schedule),
      "rank 1, micro-batch 0: Forward of micro-batch 0, chunk 0 comes before RecvForward of micro-batch 0, chunk 0");
}

TEST(Checker, FindsReceivesInAnotherOrderThanSends) {
  Schedule schedule = make_schedule(ScheduleKind::kGpipe, {.pp = 2, .micro_batches = 2});
  auto& list = schedule.ranks[1];  // RecvForward 0, Forward 0, RecvForward 1, Forward 1, …
  std::rotate(list.begin(), list.begin() + 2, list.begin() + 4);
  EXPECT_THAT(error_of(schedule), AllOf(HasSubstr("rank 1, micro-batch 1"), HasSubstr("rank 0 sends next")));
}

TEST(Checker, FindsADeadlock) {
  // Each rank's order is right for its own data, but rank 0 wants the gradient of micro-batch 1 before it sends its
  // activation.
  Schedule schedule = make_schedule(ScheduleKind::kGpipe, {.pp = 2, .micro_batches = 1});
  auto& list = schedule.ranks[0];  // Forward, SendForward, RecvBackward, Backward
  std::swap(list[1], list[2]);
  EXPECT_EQ(error_of(schedule),
            "rank 0, micro-batch 0: RecvBackward of micro-batch 0, chunk 0 waits forever for rank 1 (deadlock)");
}

TEST(Checker, FindsThatBlockingSendsDeadlockInTheUsualOrder) {
  const Schedule schedule = make_schedule(ScheduleKind::kOneFOneB, {.pp = 4, .micro_batches = 8});
  EXPECT_THAT(error_of(schedule, {.sends = SendMode::kBlocking}), HasSubstr("deadlock"));
}

TEST(Checker, FindsMoreActivationsThanClaimed) {
  Schedule schedule = make_schedule(ScheduleKind::kGpipe, {.pp = 2, .micro_batches = 8});
  schedule.kind = ScheduleKind::kOneFOneB;
  EXPECT_THAT(error_of(schedule), HasSubstr("rank 0, micro-batch 2: 8 activations are held, 2 are claimed"));
  EXPECT_EQ(error_of(schedule, {.activations = false}), "");
}

TEST(Schedule, InterleavedGoesInMegatronsOrder) {
  const Schedule schedule = make_schedule(ScheduleKind::kInterleaved, {.pp = 2, .vp = 2, .micro_batches = 4});
  std::string order;
  for (const Instruction& step : schedule.ranks[1]) {
    if (is_message(step.op)) continue;
    order += (step.op == Op::kForward ? "F" : "B") + std::to_string(step.micro_batch) + "." +
             std::to_string(step.chunk) + " ";
  }
  EXPECT_EQ(order, "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0 ");
}

TEST(Schedule, OfOneStageHasNoMessages) {
  for (const ScheduleKind kind : {ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kZeroBubble}) {
    const Schedule schedule = make_schedule(kind, {.micro_batches = 3});
    for (const Instruction& step : schedule.ranks[0]) {
      EXPECT_FALSE(is_message(step.op)) << to_text(step);
    }
  }
}

}  // namespace
}  // namespace layline::schedule
