#include "layline/study/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "layline/base/units.h"
#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/study/tolerance.h"

namespace layline::study {
namespace {

std::string text_of(const spec::Job& job, const std::optional<search::PricedLayout>& priced) {
  if (!priced) return "";
  return layout::to_text(priced->layout, layout::text_defaults(job.engine)) +
         (priced->price.fits ? "" : " (too large)");
}

std::string signed_percent(double fraction) {
  return fmt::format("{}{}", fraction < 0 ? "-" : "+", base::format_percent(std::abs(fraction)));
}

std::string gain_cell(const Rule& rule, const std::optional<double>& gain) {
  return gain ? gain_text(rule, *gain) : "";
}

std::string pair_text(const Pair& pair) {
  return fmt::format("{}: {} {:.4g} s, {} {:.4g} s", pair.sweep, pair.follows.text, pair.follows.seconds,
                     pair.breaks.text, pair.breaks.seconds);
}

std::string job_text(const Study& study, size_t job) {
  const std::string others = other_values_text(study, study.jobs[job], "");
  return others.empty() ? "the only job" : others;
}

std::string mark_of(const Outcome& outcome) {
  switch (outcome.verdict) {
    case Verdict::kHolds:
      return "+";
    case Verdict::kNoDifference:
      return "=";
    case Verdict::kBreaks:
      return "-";
    case Verdict::kDoesNotApply:
      break;
  }
  return ".";
}

}  // namespace

std::string gain_text(const Rule& rule, double gain) {
  if (rule.is_comparison()) return signed_percent(gain);
  if (gain > -kNoticeable) return "the best";
  // By how much longer its step is than the best one.
  const double longer = 1 / (1 + gain) - 1;
  return longer < 1 ? base::format_percent(longer) + " slower" : fmt::format("{:.3g} times as slow", longer + 1);
}

Table evidence_table(const EvidenceSummary& evidence) {
  Table table{"what measured runs say",
              {"rule", "pairs", "agree", "median", "only it fits", "only the other fits", "sweeps", "best agrees",
               "median of the best", "worst exception"},
              {}};
  for (const Evidence& e : evidence.rules) {
    if (e.pairs.empty() && e.best.empty() && e.num_only_follows_fits + e.num_only_breaks_fits == 0) continue;
    const std::vector<Pair> exceptions = e.exceptions();
    const bool compares = e.rule->is_comparison();
    table.rows.push_back({std::string(e.rule->id), compares ? fmt::format("{}", e.pairs.size()) : "",
                          compares ? fmt::format("{}", e.num_agreeing()) : "", gain_cell(*e.rule, e.median_gain()),
                          compares ? fmt::format("{}", e.num_only_follows_fits) : "",
                          compares ? fmt::format("{}", e.num_only_breaks_fits) : "", fmt::format("{}", e.best.size()),
                          fmt::format("{}", e.num_best_agreeing()), gain_cell(*e.rule, e.median_best_gain()),
                          exceptions.empty() ? "" : pair_text(exceptions.front())});
  }
  return table;
}

Table exceptions_table(const Evidence& evidence, size_t limit) {
  Table table{
      fmt::format("exceptions to {}", evidence.rule->id), {"sweep", "with it", "s", "without it", "s", "gain"}, {}};
  for (const Pair& pair : evidence.exceptions()) {
    if (table.rows.size() == limit) break;
    table.rows.push_back({pair.sweep, pair.follows.text, fmt::format("{:.4g}", pair.follows.seconds), pair.breaks.text,
                          fmt::format("{:.4g}", pair.breaks.seconds), gain_text(*evidence.rule, pair.gain)});
  }
  return table;
}

Table rules_table(const Study& study) {
  Table table{"rules", {"rule", "holds", "same", "breaks", "n/a", "median", "worst", "where"}, {}};
  for (const RuleSummary& s : study.rules) {
    table.rows.push_back({std::string(s.rule->id), fmt::format("{}", s.num_holds),
                          fmt::format("{}", s.num_no_difference), fmt::format("{}", s.num_breaks),
                          fmt::format("{}", s.num_does_not_apply), gain_cell(*s.rule, s.median_gain),
                          gain_cell(*s.rule, s.worst_gain), s.worst_gain ? job_text(study, s.worst_job) : ""});
  }
  return table;
}

Table jobs_table(const Study& study) {
  const std::vector<std::string> varied = varied_lists(study);
  Table table{"jobs", varied, {}};
  table.columns.insert(table.columns.end(), {"best layout", "step s", "MFU %", "rules"});
  for (const StudyJob& job : study.jobs) {
    const Advice& advice = job.advice;
    std::vector<std::string> row;
    for (const std::string& list : varied) row.push_back(plain_value(job, list));
    if (advice.best) {
      const double seconds = advice.best->price.step_seconds;
      std::string marks;
      for (const Outcome& outcome : advice.outcomes) marks += mark_of(outcome);
      row.insert(row.end(), {text_of(*advice.job, advice.best), fmt::format("{:.4g}", seconds),
                             base::format_percent_number(cost::model_flops_utilization(*advice.job, seconds)), marks});
    } else {
      row.insert(row.end(), {advice.why_nothing_fits, "", "", ""});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table turns_table(const Study& study) {
  // By rule and list: at which values it stops and becomes true, and how often.
  using Values = std::vector<std::pair<std::string, int64_t>>;
  std::map<std::pair<const Rule*, std::string_view>, std::pair<Values, Values>> turns;
  for (const Boundary& b : study.boundaries) {
    auto& [stops, begins] = turns[{b.rule, b.along}];
    Values& values = b.stops ? stops : begins;
    const std::string value = plain_value(study.jobs[b.after], b.along);
    const auto place =
        std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == value; });
    if (place == values.end()) {
      values.emplace_back(value, 1);
    } else {
      ++place->second;
    }
  }
  const auto text = [](Values values) {
    std::stable_sort(values.begin(), values.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
    std::vector<std::string> texts;
    for (const auto& [value, count] : values) texts.push_back(fmt::format("{} ({})", value, count));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  Table table{"where rules turn", {"rule", "along", "stops being true from", "becomes true from"}, {}};
  for (const auto& [key, values] : turns) {
    table.rows.push_back(
        {std::string(key.first->id), std::string(key.second), text(values.first), text(values.second)});
  }
  return table;
}

Table boundaries_table(const Study& study) {
  Table table{"boundaries", {"rule", "along", "at", "true", "not true", "gain"}, {}};
  for (const Boundary& b : study.boundaries) {
    const StudyJob &before = study.jobs[b.before], &after = study.jobs[b.after];
    const std::string from = value_text(before, b.along), to = value_text(after, b.along);
    const StudyJob& broken = b.stops ? after : before;
    const auto rule = static_cast<size_t>(b.rule - rules().data());
    table.rows.push_back({std::string(b.rule->id), std::string(b.along), other_values_text(study, after, b.along),
                          b.stops ? "at " + from : "from " + to, b.stops ? "from " + to : "at " + from,
                          gain_cell(*b.rule, broken.advice.outcomes[rule].gain)});
  }
  return table;
}

}  // namespace layline::study
