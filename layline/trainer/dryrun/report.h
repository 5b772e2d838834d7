// A dry run beside the planner's prediction, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "layline/base/text_table.h"
#include "layline/memory/stage_memory.h"
#include "layline/trainer/config/resolve_layout.h"
#include "layline/trainer/config/run_config.h"
#include "layline/trainer/dryrun/dry_run.h"

namespace layline::trainer::dryrun {

struct Report {
  config::ResolvedLayout resolved;
  DryRun run;
  std::vector<memory::StageMemory> predicted;  // of each stage
  double seconds = 0;                          // that the dry run took
};

// Checks everything that a run on world_size ranks would check before its first step, then runs its layout dry. Throws
// base::InputError for what the user can mend.
Report check_and_run(const config::RunConfig& config, int64_t world_size);

// Whether every rank's peak is within memory_limit_bytes, where that is given.
bool fits(const Report& report, const config::RunConfig& config);

// A table by stage, and by name of the fullest one.
std::string to_text(const Report& report, const config::RunConfig& config, const base::TextStyle& style);

// {schema_version, layout, num_ranks, peak_memory_bytes, peak_memory_bytes_by_stage, stages: [{stage, run_as, rank,
// layers, peak_memory_bytes, peak_moment, memory_bytes: {name: b}, peak_memory_bytes_by_moment: {name: b},
// predicted_memory_bytes, predicted_bytes: {name: b}}…], …}
std::string to_json(const Report& report);

}  // namespace layline::trainer::dryrun
