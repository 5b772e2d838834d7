#include "layline/report/best_pictures.h"

#include <algorithm>

#include "layline/spec/registry.h"

namespace layline::report {
namespace {

Picture picture_of(const ReportRun& run, const std::string& calibration) {
  auto job = std::make_shared<spec::Job>(*run.job);
  job->calibration =
      calibration.empty() ? spec::default_calibration(job->engine, job->cluster) : spec::get_calibration(calibration);
  Picture picture{.run = &run, .title = run.job_name + ": " + short_layout(run), .job = job, .stages = {}};
  cost::Pricer pricer(*job);
  picture.stages = pricer.stages(run.layout);
  return picture;
}

}  // namespace

std::vector<Picture> best_pictures(const RunList& runs, const std::string& calibration, size_t most,
                                   const std::function<bool(const ReportRun&)>& wanted) {
  const RunList usable =
      those(runs, [&](const ReportRun& run) { return run.job && run.prediction.has_value() && wanted(run); });
  const std::vector<JobGroup> jobs = jobs_of(usable);
  const std::vector<std::string> names = largest_jobs(jobs, most);
  std::vector<Picture> pictures;
  for (const JobGroup& job : jobs) {
    if (std::find(names.begin(), names.end(), job.name) == names.end()) continue;
    const ReportRun* run = fastest(job.runs);
    if (run == nullptr) run = predicted_fastest(job.runs);
    if (run != nullptr) pictures.push_back(picture_of(*run, calibration));
  }
  return pictures;
}

}  // namespace layline::report
