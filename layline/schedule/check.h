// Whether a schedule's lists are right: every micro-batch once, in an order that its data allows, no deadlock, and no
// more activations than the schedule claims. Works on any lists, not only ours.
//
//   if (auto violation = find_violation(schedule)) fail(violation->text());
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layline/schedule/schedule.h"

namespace layline::schedule {

enum class SendMode {
  kAsynchronous,  // a send never waits (Gloo, buffered isend)
  kGrouped,       // messages between two computations are posted together and all wait for their partners (NCCL groups,
                  // Megatron's send_forward_recv_backward)
  kBlocking,      // one message after the other, each waits for its partner; wants PipelineShape::blocking_order
};

struct CheckOptions {
  SendMode sends = SendMode::kAsynchronous;
  bool activations = true;  // also: no rank holds more activations than max_in_flight() of the schedule's kind
};

struct Violation {
  int64_t rank = 0;
  int64_t micro_batch = 0;
  std::string reason;
  std::string text() const;  // "rank 2, micro-batch 5: Forward comes before its RecvForward"
};

// The first thing that is wrong, nothing when all is right.
std::optional<Violation> find_violation(const Schedule& schedule, const CheckOptions& options = {});

// The most activations (micro-batch and chunk) that a rank's list holds at any time.
int64_t peak_activations(const std::vector<Instruction>& list);

}  // namespace layline::schedule
