#include "layline/study/sides.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "layline/search/refine.h"

namespace layline::study {
namespace {

using layout::Layout;
using search::PricedLayout;

using Found = std::optional<PricedLayout>;

// The first of a sorted list that `matches`.
template <typename Matches>
Found first(const std::vector<PricedLayout>& sorted, Matches matches) {
  const auto found =
      std::find_if(sorted.begin(), sorted.end(), [&](const auto& entry) { return matches(entry.layout); });
  return found == sorted.end() ? Found() : Found(*found);
}

template <typename Matches>
Found fastest_or_nearest(const Candidates& candidates, Matches matches) {
  if (Found found = first(candidates.fitting, matches)) return found;
  return first(candidates.misses, matches);
}

// With other splits and partial checkpointing, as plans have them.
Found refined(const Judged& judged, Found found) {
  if (!found || !found->price.fits || judged.is_restricted) return found;
  cost::Pricer pricer(*judged.job);
  std::vector<PricedLayout> best = {*found};
  search::refine(*judged.job, {}, 1, pricer, best);
  return best.front();
}

// The fastest by price under any of these constraints, else the nearest miss.
Found searched(spec::Job job, const std::vector<layout::LayoutConstraints>& constraints) {
  job.calibration.measured.clear();  // plans rank by it
  Found best, nearest;
  for (const layout::LayoutConstraints& fix : constraints) {
    const search::Plan plan = search::find_plan(job, {.fix = fix, .top = 1, .remedies = false});
    if (!plan.best.empty() && (!best || search::is_faster(plan.best.front(), *best))) best = plan.best.front();
    if (plan.nearest_misses.empty()) continue;
    const PricedLayout& miss = plan.nearest_misses.front();
    if (!nearest || miss.price.peak_memory_bytes < nearest->price.peak_memory_bytes) nearest = miss;
  }
  return best ? best : nearest;
}

bool speaks_of(const Rule& rule, Axis axis) {
  return std::find(rule.axes.begin(), rule.axes.end(), axis) != rule.axes.end();
}

// The fastest runs of both sides with the same kernels, but for those that the rule speaks of. Runs with slow kernels
// are many; what they lose is not what the rule is about.
std::pair<Found, Found> measured_sides(const Rule& rule, const Judged& judged) {
  for (const PricedLayout& fastest : judged.measured) {
    const auto on = [&](Side side) {
      return [&, side](const Layout& layout) {
        return rule.side(layout, judged.around) == side &&
               (speaks_of(rule, Axis::kAttention) || layout.attention == fastest.layout.attention) &&
               (speaks_of(rule, Axis::kNorm) || layout.norm == fastest.layout.norm);
      };
    };
    Found follows = first(judged.measured, on(Side::kFollows)), other = first(judged.measured, on(Side::kBreaks));
    if (follows && other) return {follows, other};
  }
  return {};
}

}  // namespace

void find_sides(const Rule& rule, const Judged& judged, Outcome& outcome) {
  const auto on = [&](Side side) {
    return [&rule, &judged, side](const Layout& layout) { return rule.side(layout, judged.around) == side; };
  };
  outcome.follows = refined(judged, fastest_or_nearest(judged.candidates, on(Side::kFollows)));
  outcome.other = rule.breaking != nullptr && !judged.is_restricted
                      ? searched(*judged.job, rule.breaking(judged.job->engine))
                      : refined(judged, fastest_or_nearest(judged.candidates, on(Side::kBreaks)));
}

void find_prescribed(const Rule& rule, const Judged& judged, Outcome& outcome) {
  cost::Pricer pricer(*judged.job);
  Found miss;
  for (const Prescription& choice : rule.prescribe(*judged.job, pricer)) {
    const bool is_exact = choice.exact && !judged.is_restricted;
    const Found found =
        is_exact ? PricedLayout{*choice.exact, pricer.price(*choice.exact), std::nullopt}
                 : fastest_or_nearest(judged.candidates, [&](const Layout& l) { return choice.fix.matches(l); });
    if (found && !miss) miss = found;
    if (!found || !found->price.fits) continue;
    outcome.follows = is_exact ? found : refined(judged, found);
    break;
  }
  if (!outcome.follows) outcome.follows = miss;
  outcome.other = judged.best;
}

void find_measured(const Rule& rule, const Judged& judged, Outcome& outcome) {
  Found follows, other;
  if (rule.is_comparison()) {
    std::tie(follows, other) = measured_sides(rule, judged);
  } else if (outcome.follows && !judged.measured.empty()) {
    follows = first(judged.measured, [&](const Layout& l) { return l == outcome.follows->layout; });
    other = judged.measured.front();
  }
  if (!follows || !other) return;
  outcome.measured = MeasuredSides{*follows, *other, *other->measured_seconds / *follows->measured_seconds - 1};
}

}  // namespace layline::study
