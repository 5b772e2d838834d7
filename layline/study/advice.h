// Every rule at one job: by price, and by its measured runs where the calibration holds some.
//
//   Advice advice = advise(job);
//   if (!advice.best) … advice.why_nothing_fits …
//   for (const Outcome& outcome : advice.outcomes) …
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layline/search/search.h"
#include "layline/spec/job.h"
#include "layline/study/outcome.h"

namespace layline::study {

struct Advice {
  std::shared_ptr<const spec::Job> job;
  int64_t num_legal = 0, num_fit = 0;
  std::optional<search::PricedLayout> best;  // by price; none where nothing fits
  std::vector<Outcome> outcomes;             // one a rule in the order of rules(); empty where nothing fits
  std::string why_nothing_fits;
};

Advice advise(const spec::Job& job);

// The same by price alone and without exceptions, of these layouts only, when there are some: what a study asks of each
// of its jobs, so that all are judged alike.
Advice advise_by_price(const spec::Job& job, const std::vector<layout::Layout>* only);

}  // namespace layline::study
