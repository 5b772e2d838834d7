// Bytes of a stage of engines whose working set is followed operator by operator (M14 to M17 of docs/model.md): of all
// moments of a step the one that needs most.
#pragma once

#include "layline/memory/stage_memory.h"

namespace layline::memory {

// As stage_memory(), without reserve and context.
StageMemory stage_of_operators(const spec::Job& job, const layout::Layout& layout, const StageGroup& group,
                               const LayerActivations& layer, int64_t micro_batches);

}  // namespace layline::memory
