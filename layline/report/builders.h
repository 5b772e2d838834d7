// The sections of a report of runs, each from the same list. A section that has nothing to show says why in its text.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layline/calibrate/validate.h"
#include "layline/report/figure.h"
#include "layline/report/jobs.h"

namespace layline::report {

using Datasets = std::map<std::string, Dataset>;

// What the runs are: how many of each file ran, ran out of memory, failed, are predicted and why not.
Section overview(const RunList& runs, const std::vector<runs::RunTable>& tables);

// The fastest layout of each job, and what the planner would have picked.
Section best_layouts(const RunList& runs);

Section micro_batches(const RunList& runs);
Section checkpointing(const RunList& runs);
Section kernels(const RunList& runs);
Section tensor_against_pipeline(const RunList& runs);

// On and off: the best of each, and pairs of runs that differ in nothing else, which become dataset "sp_pairs".
Section sequence_parallelism(const RunList& runs, Datasets& datasets);

// Bytes by kind on every stage of the best layouts ("stages"), and their pipelines on a clock ("timeline"); both with
// this calibration, or the shipped ones when the name is empty.
Section stage_memory(const RunList& runs, const std::string& calibration, Datasets& datasets);
Section pipeline_timelines(const RunList& runs, const std::string& calibration, Datasets& datasets);

// Predicted against measured step times, with residuals and scores.
Section accuracy(const RunList& runs, const calibrate::Validation& validation);

Section time_against_memory(const RunList& runs);
Section out_of_memory(const RunList& runs);

}  // namespace layline::report
