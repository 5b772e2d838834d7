// Finer choices for layouts that are already good: how layers are split over the stages, and recomputing only some.
#pragma once

#include <vector>

#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::search {

// Tries, for each of `best` and what the constraints leave free: every other split that the engine has; where all
// layers are recomputed, ckpt=full:K with the smallest K that fits. Improvements that fit join `best`, which stays
// sorted and at most `top` long.
void refine(const spec::Job& job, const layout::LayoutConstraints& fix, size_t top, cost::Pricer& pricer,
            std::vector<PricedLayout>& best);

}  // namespace layline::search
