// Bytes of one rank of a pipeline stage at the moment it needs most, every byte with its name.
//
// Two moments are walked: the backward pass with the most micro-batches in flight (on the last stage, the loss), and
// the optimizer step. The larger one is the peak. The terms are equations M3 to M12 of docs/model.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "layline/layout/layout.h"
#include "layline/memory/activations.h"
#include "layline/memory/stage_groups.h"
#include "layline/spec/coefficients.h"
#include "layline/spec/job.h"

namespace layline::memory {

enum class Term {
  kWeights,        // M3
  kGradients,      // M3
  kOptimizer,      // M3
  kActivations,    // M6
  kTransient,      // working set of the layer that is being computed, recomputed or differentiated (M7)
  kLogits,         // M8
  kPipeline,       // stage inputs and outputs that wait to be sent or used (M9)
  kCommunication,  // reduction buckets, gathered parameters (M10)
  kBuffers,        // position tables and the step's tokens (M17)
  kOptimizerStep,  // temporaries of the step (only where the step is the peak; M11)
  kReserve,        // allocator cache and fragmentation (M12)
  kContext,        // outside the allocator (M12)
  kCount
};
inline constexpr size_t kNumTerms = static_cast<size_t>(Term::kCount);
inline constexpr std::array<std::string_view, kNumTerms> kTermNames = {
    "weights",  "gradients",     "optimizer", "activations",    "transient", "logits",
    "pipeline", "communication", "buffers",   "optimizer_step", "reserve",   "context"};

struct StageMemory {
  std::array<double, kNumTerms> bytes{};

  double& operator[](Term term) { return bytes[static_cast<size_t>(term)]; }
  double operator[](Term term) const { return bytes[static_cast<size_t>(term)]; }
  double allocated() const;  // without reserve and context
  double reserved() const;   // with the allocator's cache
  double total() const;      // with the context too: what the driver shows, and what must fit
};

// Ranks over which parameters are replicated and ZeRO shards them: dp·cp, or the hsdp group.
int64_t shard_size(const layout::Layout& layout);

// The first rank of `group` needs the most of its group. `micro_batches` a step per dp replica.
StageMemory stage_memory(const spec::Job& job, const spec::Coefficients& k, const layout::Layout& layout,
                         const StageGroup& group, const LayerActivations& layer, int64_t micro_batches);

}  // namespace layline::memory
