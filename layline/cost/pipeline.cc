#include "layline/cost/pipeline.h"

#include <algorithm>

namespace layline::cost {
namespace {

double interleaved_seconds(int64_t pp, int64_t vp, int64_t micro_batches, const PipelineRuns& runs) {
  double sum = 0, slowest = 0;
  for (const schedule::StageRun& run : runs) {
    const double each = run.time.forward + run.time.backward;
    sum += static_cast<double>(run.num_stages) * each;
    slowest = std::max(slowest, each);
  }
  const double full = static_cast<double>(std::max(micro_batches, pp));
  const double filling =
      pp > 1 ? static_cast<double>(std::min(micro_batches, pp) - 1) / static_cast<double>(pp - 1) : 0;
  return full * slowest + filling * (sum - slowest) / static_cast<double>(vp);
}

}  // namespace

double pipeline_seconds(spec::ScheduleKind kind, int64_t pp, int64_t vp, int64_t micro_batches,
                        const PipelineRuns& runs) {
  if (pp == 1) {
    return static_cast<double>(micro_batches) * (runs.front().time.forward + runs.front().time.backward);
  }
  if (vp > 1) return interleaved_seconds(pp, vp, micro_batches, runs);
  return schedule::makespan(kind, {.pp = pp, .micro_batches = micro_batches}, runs).estimate_seconds;
}

}  // namespace layline::cost
