// How long a step's pipeline takes, from the times of its groups of stages (docs/model.md, C20).
#pragma once

#include <cstdint>
#include <vector>

#include "layline/schedule/makespan.h"
#include "layline/spec/types.h"

namespace layline::cost {

// The ranks of a pipeline in order, each run of equal ones once; times of one micro-batch and all chunks of a rank, its
// sends and receives inside.
using PipelineRuns = std::vector<schedule::StageRun>;

// Seconds from the first forward to the last backward of `micro_batches` micro-batches. One chunk a rank: the closed
// forms of schedule/makespan.h. Interleaved with v chunks: max(m, p)·max + (min(m, p) − 1)/(p − 1)·(Σ − max)/v, which
// is exact for equal stages (S5; Narayanan et al. 2021, section 2.2.2).
double pipeline_seconds(spec::ScheduleKind schedule, int64_t pp, int64_t vp, int64_t micro_batches,
                        const PipelineRuns& runs);

}  // namespace layline::cost
