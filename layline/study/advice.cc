#include "layline/study/advice.h"

#include <fmt/format.h>

#include "layline/layout/layout_text.h"
#include "layline/study/reason.h"

namespace layline::study {
namespace {

std::string why_nothing_fits(const spec::Job& job, const Candidates& candidates, bool is_restricted) {
  if (!candidates.misses.empty()) {
    const search::PricedLayout& miss = candidates.misses.front();
    return fmt::format("no layout fits; the nearest, {}, would need {}",
                       layout::to_text(miss.layout, layout::text_defaults(job.engine)), miss_text(job, miss));
  }
  if (is_restricted) return "none of the layouts asked for is legal";
  return fmt::format("no layout is legal; most often: {}",
                     search::find_plan(job, {.fix = {}, .top = 1, .remedies = false}).why_none_is_legal);
}

Advice advice_of(std::shared_ptr<const spec::Job> job, const std::vector<layout::Layout>* only, bool with_exceptions) {
  Advice advice;
  advice.job = std::move(job);
  Candidates candidates = only != nullptr ? price_all(*advice.job, *only) : find_candidates(*advice.job);
  advice.num_legal = candidates.num_legal;
  advice.num_fit = candidates.num_fit;
  if (candidates.fitting.empty()) {
    advice.why_nothing_fits = why_nothing_fits(*advice.job, candidates, only != nullptr);
    return advice;
  }
  Judged judged = judge(*advice.job, std::move(candidates), only != nullptr);
  for (const Rule& rule : rules()) {  // comparisons come first, so that prescriptions are held against the best of all
    advice.outcomes.push_back(outcome_of(rule, judged, with_exceptions));
    const Outcome& outcome = advice.outcomes.back();
    for (const auto* found : {&outcome.follows, &outcome.other}) {
      if (*found && (*found)->price.fits && search::is_faster(**found, judged.best)) judged.best = **found;
    }
  }
  advice.best = judged.best;
  return advice;
}

}  // namespace

Advice advise(const spec::Job& job) { return advice_of(std::make_shared<spec::Job>(job), nullptr, true); }

Advice advise_by_price(const spec::Job& job, const std::vector<layout::Layout>* only) {
  auto unmeasured = std::make_shared<spec::Job>(job);
  unmeasured->calibration.measured.clear();
  return advice_of(std::move(unmeasured), only, false);
}

}  // namespace layline::study
