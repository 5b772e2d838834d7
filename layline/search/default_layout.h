// The layout that people would start with today, to set beside the pick.
#pragma once

#include <optional>

#include "layline/cost/step.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::search {

// The rules of thumb of Megatron-LM's guides and of BigScience's throughput notes (bigscience-workshop/bigscience,
// train/tflops_optimization.md): tensor parallelism inside the node until 18 bytes a parameter take at most 75 % of the
// memory, then pipeline stages, data parallelism with the rest; the largest micro-batch up to 8 that fits; full
// recomputation when not even one sequence fits. Engines without tensor parallelism get their highest ZeRO stage.
// Nothing when no such layout is legal; the layout may still not fit.
std::optional<PricedLayout> default_layout(const spec::Job& job, cost::Pricer& pricer);

}  // namespace layline::search
