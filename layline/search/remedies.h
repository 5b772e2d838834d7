// What would make something fit when nothing does.
#pragma once

#include <vector>

#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::search {

// Searches again with one thing changed at a time, the least change first in each kind: more GPUs (whole nodes, up to
// 16 times as many), shorter sequences at the same tokens a step, ZeRO-3 where the engine has none, recomputation where
// the engine has none. Kinds that do not help are left out.
std::vector<Remedy> find_remedies(const spec::Job& job, const SearchOptions& options);

}  // namespace layline::search
