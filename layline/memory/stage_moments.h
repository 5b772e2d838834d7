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

// Neighbouring chunks of a rank that are alike.
struct ChunkRun {
  int64_t first = 0;
  int64_t num_chunks = 1;
  ChunkPasses passes;
};

struct StageOnList {
  spec::ScheduleKind schedule;
  int64_t pp = 1;
  int64_t rank = 0;
  int64_t micro_batches = 1;
  double message_bytes = 0;
  int64_t vp = 1;
  std::span<const ChunkRun> runs;  // all chunks, in order
};

StageMoment peak_of_list(const StageOnList& stage);

}  // namespace layline::memory
