// A virtual stage's passes for one micro-batch: what is kept between them, and the moments that need most (M15 of
// docs/model.md).
#pragma once

#include "layline/layout/layout.h"
#include "layline/memory/buckets.h"
#include "layline/memory/layer_passes.h"
#include "layline/spec/job.h"

namespace layline::memory {

struct LayerActivations;

// The bytes of a chunk's own micro-batch at one moment, by name.
struct Moment {
  double activations = 0;  // kept from forward to backward, or until weight gradients are computed
  double transient = 0;
  double logits = 0;

  double total() const { return activations + transient + logits; }
};

struct ChunkPasses {
  double kept = 0;      // between the passes, of the head its input's gradient included
  double deferred = 0;  // from the backward pass to the weight gradients, where those are put off
  // At the most. A forward pass brings its input along, a backward pass its output's gradient.
  Moment forward, backward, weights;
};

// defers: weight gradients are put off (zero bubble).
ChunkPasses chunk_passes(const spec::Job& job, const layout::Layout& layout, const LayerActivations& layer,
                         const ChunkParts& chunk, bool defers);

}  // namespace layline::memory
