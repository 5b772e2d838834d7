// The dataset "runs" that most charts of a report draw from, and the filters over it.
#pragma once

#include <vector>

#include "layline/report/figure.h"
#include "layline/report/jobs.h"

namespace layline::report {

inline constexpr const char* kRunsDataset = "runs";

// A row a run. Fields: i, sweep, model, job, gpus, kernel, layout, short, tp, pp, dp, mb, sp ("on", "off"), ckpt,
// status, ran, mfu, seconds, predicted_mfu, predicted_seconds, error, verdict, fit_probability, margin_gib, memory_gib
// (measured, else predicted), memory_is_measured, pareto (none of its job both faster and smaller).
Dataset runs_dataset(const RunList& runs);

// By model, GPUs and kernel; only those with a choice.
std::vector<Filter> run_filters(const RunList& runs);

// The runs of the front of step time and memory, of one job's runs that ran.
RunList pareto_front(const RunList& job_runs);

std::optional<double> memory_for_pareto(const ReportRun& run);  // bytes: measured, else predicted

}  // namespace layline::report
