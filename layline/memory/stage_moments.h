// Bytes of a stage that runs its schedule's list, at the most over the computations of the list that can be it (M16 of
// docs/model.md).
#pragma once

#include <span>

#include "layline/memory/chunk_passes.h"

namespace layline::memory {

// Live at once: the micro-batches in flight and one computation.
struct StageMoment {
  double activations = 0;
  double transient = 0;
  double logits = 0;
  double pipeline = 0;  // messages: posted, sent, in use

  double total() const { return activations + transient + logits + pipeline; }
};

struct StageOnList {
  spec::ScheduleKind schedule;
  int64_t pp = 1;
  int64_t rank = 0;
  int64_t micro_batches = 1;
  double message_bytes = 0;
  std::span<const ChunkPasses> chunks;
};

StageMoment peak_of_list(const StageOnList& stage);

}  // namespace layline::memory
