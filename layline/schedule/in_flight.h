// How many activations a pipeline rank holds at most: closed forms of what the checker counts in the instruction lists
// (docs/model.md, S1).
#pragma once

#include <cstdint>

#include "layline/spec/types.h"

namespace layline::schedule {

// The most activations of one micro-batch and one virtual stage (chunk) that pipeline rank `rank` (0 … pp − 1) holds at
// any time, of `micro_batches` micro-batches; each is kept from its forward to the end of its backward (for zero-bubble
// to its weight gradient).
//   GPipe        m                                (Huang et al. 2019)
//   1F1B         min(p − rank, m)                 (Narayanan et al. 2021, section 2.2.1)
//   interleaved  min(2(p − rank − 1) + (v − 1)·g + 1, m·v)   (Megatron-LM; groups of at most g
//                                                                 micro-batches, interleaved_group_size())
//   ZB-H1        min(p, m)                        (Qi et al. 2024, section 2: a rank delays its weight gradients so
//   that
//                                                  every rank holds as many as 1F1B's first)
int64_t max_in_flight(spec::ScheduleKind kind, int64_t pp, int64_t vp, int64_t rank, int64_t micro_batches);

// The most micro-batches that the interleaved schedule takes through one chunk before the next: pp when micro-batches
// are a multiple of it. Otherwise they are dealt into ⌊m / pp⌋ groups (at least one) of about the same size, since a
// group of fewer than pp behind full ones would deadlock (Megatron-Core refuses it).
int64_t interleaved_group_size(int64_t pp, int64_t micro_batches);

}  // namespace layline::schedule
