// Real step times beside predicted ones, where the calibration holds a measured run of the very job and layout.
#pragma once

#include <vector>

#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::search {

// Marks the layouts of `best` that were measured, adds measured layouts that the constraints allow and that are not
// among them, and sorts by the measured time where there is one, else by the predicted; at most `top` stay. A layout
// that really ran fits, whatever is predicted for it.
void put_measured(const spec::Job& job, const layout::LayoutConstraints& fix, size_t top, cost::Pricer& pricer,
                  std::vector<PricedLayout>& best);

}  // namespace layline::search
