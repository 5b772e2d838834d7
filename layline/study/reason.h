// Sentences on why one layout is faster than another, from where their seconds and bytes go.
#pragma once

#include <string>
#include <vector>

#include "layline/search/explain.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::study {

// "1.31 s more tensor parallel, 0.42 s more pipeline bubble; 0.2 s less launch": what the second spends more than the
// first, the largest first, and what it saves. Differences below a hundredth of a step are left out.
std::string difference_text(const std::vector<search::Difference>& seconds, double step_seconds);

// "3.2 GiB more than there is (activations 24.8, logits 12.5, weights 6.2)" of a layout that does not fit.
std::string miss_text(const spec::Job& job, const search::PricedLayout& miss);

}  // namespace layline::study
