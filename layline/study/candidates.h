// The legal layouts of a job, priced and thinned out: of those that agree in what rules speak of, the fastest.
#pragma once

#include <cstdint>
#include <vector>

#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::study {

struct Candidates {
  // Of each (tp, pp, cp, micro-batch, sp, checkpointing, ZeRO stage) the fastest that fits; fastest first.
  std::vector<search::PricedLayout> fitting;
  // Of those where none fits the smallest; smallest peak first. Micro-batches beyond one that does not fit are not
  // here.
  std::vector<search::PricedLayout> misses;
  int64_t num_legal = 0, num_fit = 0;
};

// With the engine's best kernels, as search::find_plan looks for layouts; its splits and partial checkpointing are not
// tried. The same result whatever the number of threads.
Candidates find_candidates(const spec::Job& job);

// The same of these layouts, which are legal, without thinning out.
Candidates price_all(const spec::Job& job, const std::vector<layout::Layout>& layouts);

}  // namespace layline::study
