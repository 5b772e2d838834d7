// Seconds of the tensor-parallel collectives of one layer (docs/model.md, C12).
#pragma once

#include "layline/cost/collective.h"
#include "layline/cost/machine.h"
#include "layline/memory/activations.h"
#include "layline/spec/job.h"

namespace layline::cost {

enum class Pass { kForward, kBackward };

LinkUse tensor_parallel_links(const Machine& machine);

// Two all-reduces of the hidden states a pass (Shoeybi et al. 2019, section 3); with sequence parallelism an all-gather
// and a reduce-scatter each, the same bytes, and one more all-gather in the backward pass (Korthikanti et al. 2022).
double tensor_parallel_seconds(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape,
                               Pass pass);

}  // namespace layline::cost
