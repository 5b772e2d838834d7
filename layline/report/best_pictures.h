// The layouts that are drawn stage by stage: of each job the fastest, with a calibration to price it with.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layline/cost/step.h"
#include "layline/report/jobs.h"

namespace layline::report {

struct Picture {
  const ReportRun* run = nullptr;
  std::string title;                     // "Llama-13B, 2k, 64 GPUs: tp1 pp1 mb1"
  std::shared_ptr<const spec::Job> job;  // with the calibration
  std::vector<cost::StagePrice> stages;
};

// At most `most`, of the jobs with the most runs; of jobs where nothing ran the layout that is predicted to be fastest.
// Runs for which `wanted` does not hold are passed over. `calibration` is a name or file, "" for the shipped ones.
std::vector<Picture> best_pictures(const RunList& runs, const std::string& calibration, size_t most,
                                   const std::function<bool(const ReportRun&)>& wanted);

}  // namespace layline::report
