// Which send belongs to which receive: the one place that knows how virtual stages talk.
#pragma once

#include <cassert>
#include <cstdint>

#include "layline/schedule/schedule.h"

namespace layline::schedule {

// Numbers the messages of a schedule: forward ones from virtual stage j to j + 1, backward ones from j + 1 to j, for
// each micro-batch and boundary j.
class Messages {
 public:
  explicit Messages(const Schedule& schedule)
      : pp_(schedule.pp), boundaries_(schedule.num_virtual_stages() - 1), micro_batches_(schedule.micro_batches) {}

  size_t count() const { return static_cast<size_t>(2 * boundaries_ * micro_batches_); }

  // The boundary that the rank's message crosses; −1 or `boundaries` when there is no stage beyond.
  int64_t boundary(int64_t rank, const Instruction& step) const {
    const int64_t stage = step.chunk * pp_ + rank;
    return step.op == Op::kSendForward || step.op == Op::kRecvBackward ? stage : stage - 1;
  }
  bool exists(int64_t rank, const Instruction& step) const {
    const int64_t at = boundary(rank, step);
    return at >= 0 && at < boundaries_;
  }
  size_t index(int64_t rank, const Instruction& step) const {
    assert(exists(rank, step));
    const bool is_backward = step.op == Op::kSendBackward || step.op == Op::kRecvBackward;
    const int64_t at = boundary(rank, step) + (is_backward ? boundaries_ : 0);
    return static_cast<size_t>(at * micro_batches_ + step.micro_batch);
  }
  // The rank at the other end.
  int64_t partner(int64_t rank, const Instruction& step) const {
    const bool is_next = step.op == Op::kSendForward || step.op == Op::kRecvBackward;
    return is_next ? (rank + 1) % pp_ : (rank + pp_ - 1) % pp_;
  }

 private:
  int64_t pp_, boundaries_, micro_batches_;
};

}  // namespace layline::schedule
