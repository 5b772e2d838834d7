// Collectives made of messages between all pairs of a group's ranks. Behind gloo_group.h.
//
// Each rank sums its own part of a tensor from what all others send it, in rank order, and sends the sum to all: as
// many bytes as a ring moves, in two steps whatever the size, and the same bits as threads give. bf16 travels as bf16.
// Long parts go in segments, so that sums, and the way back, overlap with what still comes, and scratch memory stays
// small.
#pragma once

#include <cstdint>
#include <vector>

#include "layline/trainer/comm/call.h"
#include "layline/trainer/comm/gloo_mesh.h"
#include "layline/trainer/comm/scratch.h"

namespace layline::trainer::comm {

struct Exchange {
  GlooMesh& mesh;
  const std::vector<int64_t>& world_ranks;  // of the group
  int64_t rank;                             // within the group
  int64_t tag;                              // of this collective, the same on all ranks; tag + 1 is used as well
  Scratch& scratch;                         // of this collective alone while it runs
};

// Throws LinkError.
void do_collective(const Exchange& exchange, const Call& call);

}  // namespace layline::trainer::comm
