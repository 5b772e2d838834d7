#include "layline/report/common_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "layline/base/units.h"
#include "layline/spec/registry.h"

namespace layline::report {
namespace {

std::string one_calibration(const spec::Job& job, const std::string& name) {
  const spec::Calibration calibration =
      name.empty() ? spec::default_calibration(job.engine, job.cluster) : spec::get_calibration(name);
  if (!calibration.is_fitted()) {
    return fmt::format("{} on {} uncalibrated (step time ± {})", job.engine.name, job.cluster.gpu.title,
                       base::format_percent(calibration.relative_error_bar, 0));
  }
  return fmt::format("{} on {} with calibration {}, fitted to {} timed runs (step time ± {})", job.engine.name,
                     job.cluster.gpu.title, calibration.name, base::format_count(calibration.num_timed_runs),
                     base::format_percent(calibration.relative_error_bar, 0));
}

}  // namespace

std::string mfu_text() {
  return "MFU is model FLOPs utilization as PaLM counts it, (6N + 12·L·h·s) FLOPs a token over the dense peak of the "
         "GPUs "
         "at the run's precision, computed from the step time of every run alike, whatever its source published.";
}

std::string calibration_text(const RunList& runs, const std::string& calibration) {
  std::set<std::string> used;
  std::set<std::string> seen;
  for (const ReportRun* run : runs) {
    if (!run->job || !run->prediction) continue;
    if (!seen.insert(run->job->engine.name + "|" + run->job->cluster.name).second) continue;
    used.insert(one_calibration(*run->job, calibration));
  }
  if (used.empty()) return "None of these runs can be predicted; the report shows what was measured.";
  return fmt::format(
      "Predictions: {}. A shipped calibration may have been fitted to these very runs; `layline validate "
      "--leave-out sweep` says how good it is on runs it has not seen.",
      fmt::join(used, "; "));
}

}  // namespace layline::report
