#include "layline/schedule/in_flight.h"

#include <algorithm>
#include <cassert>

namespace layline::schedule {

int64_t interleaved_group_size(int64_t pp, int64_t micro_batches) {
  const int64_t num_groups = std::max<int64_t>(1, micro_batches / pp);
  return (micro_batches + num_groups - 1) / num_groups;
}

int64_t max_in_flight(spec::ScheduleKind kind, int64_t pp, int64_t vp, int64_t rank, int64_t micro_batches) {
  assert(rank >= 0 && rank < pp && vp >= 1 && micro_batches >= 1);
  switch (kind) {
    case spec::ScheduleKind::kGpipe:
      return micro_batches;
    case spec::ScheduleKind::kInterleaved:
      if (vp == 1) break;
      return std::min(2 * (pp - rank - 1) + (vp - 1) * interleaved_group_size(pp, micro_batches) + 1,
                      micro_batches * vp);
    case spec::ScheduleKind::kZeroBubble:
      return std::min(pp, micro_batches);
    case spec::ScheduleKind::kOneFOneB:
      break;
  }
  return std::min(pp - rank, micro_batches);
}

}  // namespace layline::schedule
