#include "apps/layline/timeline.h"

#include <algorithm>

#include "layline/layout/legality.h"

namespace layline::app {

schedule::Timeline timeline_of(const spec::Job& job, const search::Explanation& explanation,
                               int64_t max_micro_batches) {
  const layout::Layout& layout = explanation.priced.layout;
  // Whole groups of pp, since interleaved schedules want them.
  const int64_t most = std::max<int64_t>(1, max_micro_batches / layout.pp) * layout.pp;
  const int64_t micro_batches = std::min(layout::num_micro_batches(layout, job), most);
  const double chunks = static_cast<double>(layout.vp);
  schedule::StageTimes times;
  for (int64_t stage = 0; stage < layout.num_virtual_stages(); ++stage) {
    const cost::StagePrice& rank = explanation.stages[static_cast<size_t>(stage % layout.pp)];
    const double backward = rank.backward_seconds / chunks;
    times.push_back({rank.forward_seconds / chunks, backward, backward / 2});
  }
  return schedule::simulate(schedule::make_schedule(layout, micro_batches), times);
}

}  // namespace layline::app
