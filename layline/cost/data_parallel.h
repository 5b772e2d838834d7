// Seconds that data parallelism and ZeRO add to a step, beyond what compute hides (docs/model.md, C21 and C22).
#pragma once

#include "layline/cost/machine.h"
#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::cost {

struct DataParallelInput {
  double parameters = 0;  // of the stage on this rank
  double layers = 0;      // transformer layers of the stage
  double micro_batches = 1;
  double forward_seconds = 0;  // of one micro-batch on the stage
  double backward_seconds = 0;
};

// The exposed seconds of one step on one stage. ZeRO-0: all-reduce of the gradients; ZeRO-1: the engine's reduction and
// an all-gather of the parameters; ZeRO-2: reduce-scatter each micro-batch; ZeRO-3: parameters gathered in forward and
// again in backward, gradients scattered, each micro-batch (Rajbhandari et al. 2020, section 5; Zhao et al. 2023).
double data_parallel_seconds(const spec::Job& job, const Machine& machine, const layout::Layout& layout,
                             const DataParallelInput& stage);

}  // namespace layline::cost
