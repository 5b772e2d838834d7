// The layout of a run on so many ranks, as written or as the planner picks it, and what the planner expects of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"
#include "layline/trainer/config/run_config.h"

namespace layline::trainer::config {

struct ResolvedLayout {
  layout::Layout layout;  // legal for the job
  spec::Job job;          // the run as the planner sees it, on the run's cluster
  std::string text;       // canonical
  std::string how;        // "as written", "the planner's first of 636 that fit"
  // Of one rank at the run's precision, for MFU. None when the cluster is only this build's guess (RunConfig::cluster
  // is empty), and for fp64, whose peak no cluster states.
  std::optional<double> peak_flops_per_second;
};

// The run as the planner sees it on so many ranks, without a layout. Throws base::InputError as resolve_layout does.
spec::Job job_of(const RunConfig& config, int64_t world_size);

// With engine `layline`. "auto" is the planner's fastest layout that fits, with memory_limit_bytes as the memory of a
// rank where it is given; it is the same on every rank. A device "cpu" without a cluster is priced as ranks of one
// machine (cluster spec "cpu"); fp64 is priced as fp32. Throws base::InputError: a layout text that is none, a layout
// that is illegal (with the reason), nothing that fits, a cluster that is not known or that so many ranks do not fill.
ResolvedLayout resolve_layout(const RunConfig& config, int64_t world_size);

struct Prediction {
  double step_seconds = 0;
  double relative_error_bar = 0;
  bool is_calibrated = false;
  std::vector<double> memory_bytes_by_stage;  // of the fullest rank of each pipeline stage
  double capacity_bytes = 0;                  // of a rank
  double fit_probability = 0;
};

// Of a legal layout.
Prediction predict(const spec::Job& job, const layout::Layout& layout);

// Model FLOPs (PaLM) of a step over what all ranks could do in its seconds; none without a peak.
std::optional<double> model_flops_utilization(const ResolvedLayout& resolved, double step_seconds);

}  // namespace layline::trainer::config
