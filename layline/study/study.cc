#include "layline/study/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/calibrate/score.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"

namespace layline::study {
namespace {

using layout::Layout;

constexpr size_t kMaxLayouts = 20'000;

struct List {
  std::string_view name;
  size_t StudyPoint::* index;
  size_t (*size)(const StudySpec&);
};

const std::array<List, 6>& lists() {
  static const std::array<List, 6> all = {
      List{"engines", &StudyPoint::engine, [](const StudySpec& s) { return s.engines.size(); }},
      List{"clusters", &StudyPoint::cluster, [](const StudySpec& s) { return s.clusters.size(); }},
      List{"models", &StudyPoint::model, [](const StudySpec& s) { return s.models.size(); }},
      List{"sequence_lengths", &StudyPoint::sequence_length,
           [](const StudySpec& s) { return s.sequence_lengths.size(); }},
      List{"global_batch_tokens", &StudyPoint::global_batch_tokens,
           [](const StudySpec& s) { return s.global_batch_tokens.size(); }},
      List{"gpus", &StudyPoint::gpus, [](const StudySpec& s) { return s.gpus.size(); }}};
  return all;
}

std::vector<std::string> texts_of(const StudySpec& spec) {
  std::vector<std::string> texts = spec.layouts.texts;
  size_t product = spec.layouts.axes.empty() ? 0 : 1;
  for (const search::Axis& axis : spec.layouts.axes) {
    if (__builtin_mul_overflow(product, axis.words.size(), &product)) product = SIZE_MAX;
  }
  if (product > kMaxLayouts) {
    throw base::InputError(spec.where + ": $.layouts",
                           fmt::format("its axes have {} products, want at most {}", product, kMaxLayouts));
  }
  if (product > 0) {
    search::for_each_product(spec.layouts.axes,
                             [&](const auto& words) { texts.push_back(fmt::format("{}", fmt::join(words, " "))); });
  }
  return texts;
}

// Those of the texts that the job can run, once each.
std::vector<Layout> legal_layouts(const std::vector<std::string>& texts, const spec::Job& job) {
  const layout::TextDefaults defaults = layout::text_defaults(job.engine);
  std::vector<Layout> layouts;
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    Layout layout;
    try {
      layout = layout::parse_layout(text, {.num_gpus = job.num_gpus, .defaults = defaults});
    } catch (const base::InputError&) {
      continue;  // its axes do not divide the GPUs: illegal here, and perhaps not at the next job
    }
    layout.sp = layout.sp && layout.tp > 1;
    if (layout::is_legal(layout, job) && seen.insert(layout::to_text(layout)).second) layouts.push_back(layout);
  }
  return layouts;
}

std::vector<search::PricedLayout> notable_layouts(const Advice& advice) {
  std::vector<search::PricedLayout> notable;
  const auto add = [&](const search::PricedLayout& priced) {
    const bool is_there =
        std::any_of(notable.begin(), notable.end(), [&](const auto& entry) { return entry.layout == priced.layout; });
    if (!is_there) notable.push_back(priced);
  };
  if (advice.best) add(*advice.best);
  for (const Outcome& outcome : advice.outcomes) {
    if (outcome.follows) add(*outcome.follows);
    if (outcome.other) add(*outcome.other);
  }
  return notable;
}

StudyJob study_job(const StudyPoint& point, const StudySpec& spec, const std::vector<std::string>& texts) {
  StudyJob job{point, {}, {}};
  if (spec.layouts.texts.empty() && spec.layouts.axes.empty()) {
    job.advice = advise_by_price(*point.job, nullptr);
    job.layouts = notable_layouts(job.advice);
    return job;
  }
  const std::vector<Layout> layouts = legal_layouts(texts, *point.job);
  job.advice = advise_by_price(*point.job, &layouts);
  cost::Pricer pricer(*job.advice.job);
  for (const Layout& layout : layouts) job.layouts.push_back({layout, pricer.price(layout), std::nullopt});
  std::sort(job.layouts.begin(), job.layouts.end(), [](const auto& a, const auto& b) {
    return a.price.fits != b.price.fits ? a.price.fits : search::is_faster(a, b);
  });
  return job;
}

RuleSummary summary_of(size_t rule, const std::vector<StudyJob>& jobs) {
  RuleSummary summary;
  summary.rule = &rules()[rule];
  std::vector<double> gains;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].advice.outcomes.empty()) continue;
    const Outcome& outcome = jobs[i].advice.outcomes[rule];
    summary.num_holds += outcome.verdict == Verdict::kHolds ? 1 : 0;
    summary.num_no_difference += outcome.verdict == Verdict::kNoDifference ? 1 : 0;
    summary.num_breaks += outcome.verdict == Verdict::kBreaks ? 1 : 0;
    summary.num_does_not_apply += outcome.verdict == Verdict::kDoesNotApply ? 1 : 0;
    if (!outcome.gain) continue;
    gains.push_back(*outcome.gain);
    if (!summary.worst_gain || *outcome.gain < *summary.worst_gain) {
      summary.worst_gain = outcome.gain;
      summary.worst_job = i;
    }
    if (!summary.best_gain || *outcome.gain > *summary.best_gain) {
      summary.best_gain = outcome.gain;
      summary.best_job = i;
    }
  }
  if (!gains.empty()) summary.median_gain = calibrate::median(std::move(gains));
  return summary;
}

using Place = std::array<size_t, 6>;

Place place_of(const StudyPoint& point) {
  Place place{};
  for (size_t i = 0; i < place.size(); ++i) place[i] = point.*lists()[i].index;
  return place;
}

void add_boundaries(size_t rule, size_t list, const std::vector<StudyJob>& jobs, std::vector<Boundary>& boundaries) {
  // The last job on each line along the list at which the rule applied.
  std::map<Place, size_t> last;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].advice.outcomes.empty()) continue;
    const std::optional<bool> now = is_true(jobs[i].advice.outcomes[rule]);
    if (!now) continue;
    Place line = place_of(jobs[i].point);
    line[list] = 0;
    const auto [place, is_first] = last.try_emplace(line, i);
    if (is_first) continue;
    const bool before = *is_true(jobs[place->second].advice.outcomes[rule]);
    if (before != *now) boundaries.push_back({&rules()[rule], lists()[list].name, place->second, i, before});
    place->second = i;
  }
}

}  // namespace

std::optional<bool> is_true(const Outcome& outcome) {
  if (outcome.verdict == Verdict::kDoesNotApply) return std::nullopt;
  return outcome.verdict != Verdict::kBreaks;
}

Study run_study(const StudySpec& spec, base::ProgressSink* sink) {
  Study study;
  study.spec = spec;
  const std::vector<StudyPoint> points = points_of(spec);
  const std::vector<std::string> texts = texts_of(spec);
  {
    base::Progress progress(sink, "pricing", static_cast<int64_t>(points.size()));
    for (const StudyPoint& point : points) {  // each job is searched in parallel
      study.jobs.push_back(study_job(point, spec, texts));
      progress.advance();
    }
  }
  const bool has_any =
      std::any_of(study.jobs.begin(), study.jobs.end(), [](const StudyJob& job) { return job.advice.num_legal > 0; });
  if (!has_any && !texts.empty()) {
    throw base::InputError(spec.where + ": $.layouts",
                           fmt::format("none of {} layouts is legal at any of {} jobs", texts.size(), points.size()));
  }
  for (const StudyJob& job : study.jobs) study.num_nothing_fits += job.advice.best ? 0 : 1;
  for (size_t rule = 0; rule < rules().size(); ++rule) {
    study.rules.push_back(summary_of(rule, study.jobs));
    for (size_t list = 0; list < lists().size(); ++list) add_boundaries(rule, list, study.jobs, study.boundaries);
  }
  return study;
}

std::string plain_value(const StudyJob& job, std::string_view list) {
  const spec::Job& own = *job.point.job;
  if (list == "engines") return own.engine.name;
  if (list == "clusters") return own.cluster.name;
  if (list == "models") return own.model.name;
  if (list == "sequence_lengths") return base::format_count(own.sequence_length);
  if (list == "gpus") return base::format_count(own.num_gpus);
  return base::format_short_count(own.tokens_per_step());
}

std::string value_text(const StudyJob& job, std::string_view list) {
  const std::string value = plain_value(job, list);
  if (list == "sequence_lengths") return "sequences of " + value;
  if (list == "gpus") return value + " GPUs";
  return list == "global_batch_tokens" ? value + " tokens a step" : value;
}

std::vector<std::string> varied_lists(const Study& study) {
  std::vector<std::string> varied;
  for (const List& list : lists()) {
    if (list.size(study.spec) > 1) varied.emplace_back(list.name);
  }
  return varied;
}

std::string other_values_text(const Study& study, const StudyJob& job, std::string_view list) {
  std::vector<std::string> values;
  for (const List& other : lists()) {
    if (other.name != list && other.size(study.spec) > 1) values.push_back(value_text(job, other.name));
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace layline::study
