#include "layline/cost/pipeline.h"

#include <algorithm>

namespace layline::cost {

double pipeline_seconds(spec::ScheduleKind schedule, int64_t pp, int64_t vp, int64_t micro_batches,
                        const PipelineTimes& times) {
  const double m = static_cast<double>(micro_batches);
  const double others = times.sum - times.slowest;
  switch (schedule) {
    case spec::ScheduleKind::kGpipe:
      return times.sum + (m - 1) * (times.slowest_forward + times.slowest_backward);
    case spec::ScheduleKind::kInterleaved:
      return m * times.slowest + others / static_cast<double>(vp);
    case spec::ScheduleKind::kZeroBubble: {
      const double delayed = static_cast<double>(pp - 1) * times.slowest_weight;
      return std::max(m * times.slowest, m * times.slowest + others - delayed);
    }
    case spec::ScheduleKind::kOneFOneB:
      break;
  }
  return times.sum + (m - 1) * times.slowest;
}

}  // namespace layline::cost
