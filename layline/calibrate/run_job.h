// From a run record to what the planner prices: the job and the layout that were run.
#pragma once

#include <optional>
#include <string>

#include "layline/layout/layout.h"
#include "layline/runs/run_record.h"
#include "layline/spec/job.h"

namespace layline::calibrate {

struct RunJob {
  spec::Job job;  // without a calibration (analytic defaults)
  layout::Layout layout;
  std::string engine_name;
};

struct RunJobOrReason {
  std::optional<RunJob> run;
  std::string reason;  // why the record cannot be priced; empty when it can
};

// Builds both from the record's columns. The notes `layout=` (a layout text, for what columns cannot say) and
// `memory_limit_bytes=` (of each rank, less than the GPU has) win over them. `engine_override` replaces the engine
// column when not empty; `cluster`, which may be null, is that of the records whose hardware column names it. A record
// that lacks a needed field, or names an unknown engine or hardware, comes back with the reason. Does not throw.
RunJobOrReason job_of(const runs::RunRecord& record, const std::string& engine_override,
                      const spec::Cluster* cluster = nullptr);

// The other way round: the columns that say what is run, and nothing of what came of it. `hardware` is the cluster's
// name.
runs::RunRecord record_of(const spec::Job& job, const layout::Layout& layout);

}  // namespace layline::calibrate
