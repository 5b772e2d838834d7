#include "layline/study/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "layline/base/units.h"
#include "layline/layout/legality.h"
#include "layline/search/refine.h"
#include "layline/study/reason.h"
#include "layline/study/sides.h"
#include "layline/study/tolerance.h"

namespace layline::study {
namespace {

using layout::Layout;
using search::PricedLayout;

constexpr size_t kRefined = 10;        // layouts of which finer choices are tried to find the best
constexpr double kWorthShowing = 1.5;  // exceptions among layouts slower than this times the best are left out
constexpr size_t kMaxExceptions = 4;

using Found = std::optional<PricedLayout>;

std::string text_of(const spec::Job& job, const Layout& layout) {
  return layout::to_text(layout, layout::text_defaults(job.engine));
}

bool fits(const Found& found) { return found && found->price.fits; }

Verdict verdict_of(const Rule& rule, double gain) {
  if (!rule.is_comparison()) return gain >= -kPrescriptionTolerance ? Verdict::kHolds : Verdict::kBreaks;
  if (gain > kNoticeable) return Verdict::kHolds;
  return gain < -kNoticeable ? Verdict::kBreaks : Verdict::kNoDifference;
}

double gain_of(const PricedLayout& follows, const PricedLayout& other) {
  return other.price.step_seconds / follows.price.step_seconds - 1;
}

std::vector<search::Difference> swapped(std::vector<search::Difference> terms) {
  for (search::Difference& term : terms) std::swap(term.first, term.second);
  return terms;
}

// What the layout with the one change that is nearest to breaking the rule would do.
std::string turned_text(const Rule& rule, const Judged& judged, const Outcome& outcome) {
  if (rule.turned == nullptr) return "";
  const Layout turned = rule.turned(outcome.follows->layout);
  if (turned == outcome.follows->layout || turned == outcome.other->layout || !layout::is_legal(turned, *judged.job)) {
    return "";
  }
  cost::Pricer pricer(*judged.job);
  const PricedLayout priced{turned, pricer.price(turned), std::nullopt};
  const std::string text = text_of(*judged.job, turned);
  if (!priced.price.fits) return fmt::format("; {} would need {}", text, miss_text(*judged.job, priced));
  const double longer = gain_of(*outcome.follows, priced);
  return fmt::format("; {} takes {} {}", text, base::format_percent(std::abs(longer)), longer > 0 ? "longer" : "less");
}

std::string reason_of(const Rule& rule, const Judged& judged, const Outcome& outcome) {
  const double step = outcome.follows->price.step_seconds;
  if (outcome.follows->layout == outcome.other->layout) return "it is the best";
  if (!rule.is_comparison() || *outcome.gain < -kNoticeable) {
    return "with it " + difference_text(swapped(outcome.seconds), step);
  }
  return "without it " + difference_text(outcome.seconds, step) + turned_text(rule, judged, outcome);
}

void compare_both(const Rule& rule, const Judged& judged, Outcome& outcome) {
  const PricedLayout &follows = *outcome.follows, &other = *outcome.other;
  const double gain = gain_of(follows, other);
  outcome.gain = rule.is_comparison() ? gain : std::min(gain, 0.0);
  outcome.verdict = verdict_of(rule, *outcome.gain);
  const search::Comparison comparison =
      search::compare(search::explain(*judged.job, follows.layout), search::explain(*judged.job, other.layout));
  outcome.seconds = comparison.seconds;
  outcome.bytes = comparison.bytes;
  outcome.reason = reason_of(rule, judged, outcome);
}

void judge_one_side(const Judged& judged, Outcome& outcome) {
  if (fits(outcome.follows)) {
    outcome.verdict = outcome.other ? Verdict::kHolds : Verdict::kDoesNotApply;
    outcome.reason =
        outcome.other ? fmt::format("nothing else fits: {} would need {}", text_of(*judged.job, outcome.other->layout),
                                    miss_text(*judged.job, *outcome.other))
                      : "the job has no other layouts";
  } else if (fits(outcome.other) && outcome.follows) {
    outcome.verdict = Verdict::kBreaks;
    outcome.reason = fmt::format("it does not fit: {} would need {}", text_of(*judged.job, outcome.follows->layout),
                                 miss_text(*judged.job, *outcome.follows));
  } else {
    outcome.reason = "the job has no such layout";
  }
}

struct Frame {
  const PricedLayout *follows = nullptr, *other = nullptr;

  bool has_both() const { return follows != nullptr && other != nullptr; }
};
using Frames = std::map<int64_t, Frame>;

// The first of both sides for each value of an axis, of a sorted list.
Frames frames_of(const Rule& rule, const Judged& judged, const std::vector<PricedLayout>& sorted,
                 int64_t Layout::* axis) {
  Frames frames;
  for (const PricedLayout& entry : sorted) {
    const Side side = rule.side(entry.layout, judged.around);
    if (side == Side::kNeither) continue;
    Frame& frame = frames[entry.layout.*axis];
    const PricedLayout*& place = side == Side::kFollows ? frame.follows : frame.other;
    if (place == nullptr) place = &entry;
  }
  return frames;
}

Exception exception_of(const Judged& judged, const std::string& where, const Frame& frame, bool is_measured) {
  const double gain = is_measured ? *frame.other->measured_seconds / *frame.follows->measured_seconds - 1
                                  : gain_of(*frame.follows, *frame.other);
  const search::Comparison comparison = search::compare(search::explain(*judged.job, frame.follows->layout),
                                                        search::explain(*judged.job, frame.other->layout));
  const auto seconds = gain < 0 ? swapped(comparison.seconds) : comparison.seconds;
  return {where,          gain,         is_measured,
          *frame.follows, *frame.other, difference_text(seconds, frame.follows->price.step_seconds)};
}

// Whether a verdict about a part of the layouts is worth a line beside the one about all.
bool turns(Verdict all, Verdict part) {
  if (part == Verdict::kNoDifference || part == all) return false;
  return part == Verdict::kBreaks || all == Verdict::kBreaks;
}

void add_exceptions(const Rule& rule, const Judged& judged, Axis axis, int64_t Layout::* member, Outcome& outcome) {
  if (std::find(rule.axes.begin(), rule.axes.end(), axis) != rule.axes.end()) return;
  const double slowest = kWorthShowing * judged.best.price.step_seconds;
  Frames measured = frames_of(rule, judged, judged.measured, member);
  for (const auto& [value, priced] : frames_of(rule, judged, judged.candidates.fitting, member)) {
    const bool is_measured = measured[value].has_both();
    const Frame& frame = is_measured ? measured[value] : priced;
    if (!frame.has_both() || outcome.exceptions.size() == kMaxExceptions) continue;
    if (std::min(frame.follows->price.step_seconds, frame.other->price.step_seconds) > slowest) continue;
    const std::string where = fmt::format("{}{}", name_of(axis), value);
    const Exception exception = exception_of(judged, where, frame, is_measured);
    if (turns(outcome.verdict, verdict_of(rule, exception.gain))) outcome.exceptions.push_back(exception);
  }
}

// Runs of the very job that the calibration holds, the fastest first.
std::vector<PricedLayout> measured_of(const spec::Job& job) {
  std::vector<PricedLayout> runs;
  const std::string key = spec::measured_job_key(job);
  cost::Pricer pricer(job);
  for (const spec::MeasuredJob& measured : job.calibration.measured) {
    if (measured.job != key) continue;
    for (const auto& [text, seconds] : measured.step_seconds) {
      const Layout layout =
          layout::parse_layout(text, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine)});
      if (layout::is_legal(layout, job)) runs.push_back({layout, pricer.price(layout), seconds});
    }
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [](const auto& a, const auto& b) { return *a.measured_seconds < *b.measured_seconds; });
  return runs;
}

int64_t least_model_parallel(const std::vector<PricedLayout>& fitting, const std::vector<PricedLayout>& measured) {
  int64_t least = 0, least_of_all = 0;
  for (const auto* layouts : {&fitting, &measured}) {
    for (const PricedLayout& entry : *layouts) {
      const int64_t parallel = entry.layout.tp * entry.layout.pp;
      if (least_of_all == 0 || parallel < least_of_all) least_of_all = parallel;
      if (entry.layout.checkpointing != layout::Checkpointing::kNone) continue;
      if (least == 0 || parallel < least) least = parallel;
    }
  }
  return least > 0 ? least : least_of_all;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHolds:
      return "holds";
    case Verdict::kNoDifference:
      return "no difference";
    case Verdict::kBreaks:
      return "breaks";
    case Verdict::kDoesNotApply:
      break;
  }
  return "does not apply";
}

Judged judge(const spec::Job& job, Candidates candidates, bool is_restricted) {
  Judged judged{&job, std::move(candidates), {}, {}, {}, is_restricted};
  const std::vector<PricedLayout>& fitting = judged.candidates.fitting;
  const auto num_refined = static_cast<ptrdiff_t>(std::min(kRefined, fitting.size()));
  std::vector<PricedLayout> best(fitting.begin(), fitting.begin() + num_refined);
  if (!is_restricted) {
    cost::Pricer pricer(job);
    search::refine(job, {}, kRefined, pricer, best);
  }
  judged.best = best.front();
  judged.measured = measured_of(job);
  judged.around = {job.cluster.gpus_per_node, least_model_parallel(fitting, judged.measured)};
  return judged;
}

Outcome outcome_of(const Rule& rule, const Judged& judged, bool with_exceptions) {
  Outcome outcome;
  outcome.rule = &rule;
  outcome.reason = rule.why_not(*judged.job);
  if (!outcome.reason.empty()) return outcome;
  if (rule.is_comparison()) {
    find_sides(rule, judged, outcome);
  } else {
    find_prescribed(rule, judged, outcome);
  }
  find_measured(rule, judged, outcome);
  if (fits(outcome.follows) && fits(outcome.other)) {
    compare_both(rule, judged, outcome);
  } else {
    judge_one_side(judged, outcome);
  }
  if (outcome.measured) outcome.verdict = verdict_of(rule, outcome.measured->gain);
  if (with_exceptions && outcome.gain && rule.is_comparison() && rule.breaking == nullptr) {
    add_exceptions(rule, judged, Axis::kPipeline, &Layout::pp, outcome);
    add_exceptions(rule, judged, Axis::kTensor, &Layout::tp, outcome);
  }
  return outcome;
}

}  // namespace layline::study
