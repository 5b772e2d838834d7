// A pipeline schedule: for each pipeline rank the list of what it does in a step, in order. The planner simulates these
// lists, the trainer executes them.
//
//   Schedule schedule = make_schedule(ScheduleKind::kOneFOneB, {.pp = 4, .vp = 1, .micro_batches = 8});
//   for (const Instruction& step : schedule.ranks[my_rank]) …
//
// A rank holds chunks 0 … vp − 1; chunk c of rank r is virtual stage c·pp + r. An instruction names the rank's own
// chunk: RecvForward(3, 1) gets the input of chunk 1 for micro-batch 3 from the virtual stage before, SendForward its
// output to the one after; RecvBackward and SendBackward do the same with gradients. Lists are complete: every message
// has its send and its receive, and with pp = 1 there are none. Messages between two ranks in one direction are sent
// and received in the same order, so channels need no tags when forward and backward messages have a channel each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/types.h"

namespace layline::schedule {

using spec::ScheduleKind;

enum class Op : uint8_t {
  kForward,
  kBackward,        // both gradients
  kBackwardInput,   // gradient of the chunk's input only
  kBackwardWeight,  // gradient of the chunk's weights, later
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward,
};

constexpr bool is_message(Op op) { return op >= Op::kSendForward; }
constexpr bool is_send(Op op) { return op == Op::kSendForward || op == Op::kSendBackward; }

struct Instruction {
  Op op = Op::kForward;
  int32_t micro_batch = 0;
  int32_t chunk = 0;
  bool operator==(const Instruction&) const = default;
};

std::string to_text(const Instruction& instruction);  // "SendForward of micro-batch 3, chunk 1"

struct PipelineShape {
  int64_t pp = 1;
  int64_t vp = 1;
  int64_t micro_batches = 1;
  // For transports whose sends block until they are received. gpipe, 1f1b, zb: between a forward and a backward the
  // gradient is received before the activation is sent, so that single messages may block. Interleaved: a forward and a
  // backward exchange their messages together, as Megatron's send_forward_backward_recv_forward_backward; for messages
  // that are posted in groups, micro-batches a multiple of pp. Such lists are a little slower when sends do not block.
  bool blocking_order = false;
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::kOneFOneB;
  int64_t pp = 1, vp = 1, micro_batches = 1;
  std::vector<std::vector<Instruction>> ranks;

  int64_t num_virtual_stages() const { return pp * vp; }
  int64_t virtual_stage(int64_t rank, int64_t chunk) const { return chunk * pp + rank; }
};

// The lists of
//   GPipe        all forwards, then all backwards (Huang et al. 2019)
//   1F1B         PipeDream-flush: min(pp − rank − 1, m) forwards, then one forward, one backward (Narayanan et al.
//   2021,
//                section 2.2.1)
//   interleaved  the same over vp chunks, micro-batches in groups of pp (section 2.2.2, in Megatron-LM's order); see
//                interleaved_group_size() in in_flight.h for other numbers of micro-batches
//   zero bubble  ZB-H1: 1F1B with the backward split; rank r runs the weight gradients r micro-batches late (Qi et al.
//                2024, section 2)
// Only interleaved takes vp > 1. Fewer micro-batches than stages are fine everywhere.
Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape);
Schedule make_schedule(const layout::Layout& layout, int64_t micro_batches);

}  // namespace layline::schedule
