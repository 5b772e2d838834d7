// Bytes that a layer keeps from its forward to its backward pass, and what it needs for a moment: equations M4, M5 and
// M7 of docs/model.md (Korthikanti et al. 2022, section 4).
#pragma once

#include "layline/layout/layout.h"
#include "layline/memory/layer_passes.h"
#include "layline/spec/coefficients.h"
#include "layline/spec/job.h"

namespace layline::memory {

// The part of a layout that decides what happens inside one layer.
struct LayerShape {
  int64_t mb = 1, tp = 1, cp = 1;
  bool sp = false;
  layout::Checkpointing checkpointing = layout::Checkpointing::kNone;
  layout::AttentionKernel attention = layout::AttentionKernel::kFlash2;
  layout::NormKernel norm = layout::NormKernel::kFused;
  bool pipeline_across_nodes = false;  // pp > 1 on more than one node
  bool operator==(const LayerShape&) const = default;
};

LayerShape layer_shape(const layout::Layout& layout, int64_t gpus_per_node);

struct LayerActivations {
  double plain_bytes = 0;         // kept by a layer without checkpointing, one micro-batch (M4)
  double checkpointed_bytes = 0;  // kept by a recomputed layer (M5)
  double kept_bytes = 0;          // what `checkpointing` keeps: one of the above, or selective's
  double scores_bytes = 0;        // of plain_bytes, the attention scores (0 with flash attention)
  double gathered_bytes = 0;      // inputs gathered over tp for one layer, where sequence parallelism shards them (M7)
  LayerPasses passes;             // of engines whose working set is followed operator by operator, and …
  NormPass final_norm;            // … of the norm before their head (M14)
};

LayerActivations layer_activations(const spec::Job& job, const spec::Coefficients& k, const LayerShape& shape);

}  // namespace layline::memory
