// Layers of each virtual stage, whatever the layout's split calls them: what frameworks write and read.
#pragma once

#include <cstdint>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::exporting {

// Of a legal layout, in model order.
std::vector<int64_t> stage_layers(const spec::Job& job, const layout::Layout& layout);

// Gives the layout a split with these counts: the engine's default where it has them, else even, else explicit.
void set_stage_layers(const spec::Job& job, std::vector<int64_t> layers, layout::Layout& layout);

// The layout as an import writes it: the same stages under set_stage_layers' name for them, no sequence parallelism at
// tp 1, and no hsdp that spans all replicas.
layout::Layout canonical(const spec::Job& job, layout::Layout layout);

}  // namespace layline::exporting
