#include "apps/layline/advise_text.h"

#include <fmt/format.h>

#include "apps/layline/layout_json.h"
#include "apps/layline/terminal.h"
#include "layline/base/text_wrap.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"
#include "layline/study/tables.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;
using study::Evidence;
using study::Outcome;
using study::Pair;

constexpr size_t kExceptionsInText = 3;
constexpr size_t kExceptionsInJson = 100;
constexpr int kIndent = 4;

std::string text_of(const spec::Job& job, const layout::Layout& layout) {
  return layout::to_text(layout, layout::text_defaults(job.engine));
}

std::string priced_text(const spec::Job& job, const search::PricedLayout& priced) {
  return fmt::format("{} {:.4g} s", text_of(job, priced.layout), priced.price.step_seconds);
}

std::string measured_text(const spec::Job& job, const search::PricedLayout& run) {
  return fmt::format("{} {:.4g} s", text_of(job, run.layout), *run.measured_seconds);
}

std::string line(const std::string& text) { return base::wrap(text, text_style(), kIndent); }

std::string exception_text(const spec::Job& job, const study::Rule& rule, const study::Exception& exception) {
  return fmt::format("{} at {}, {}{}: {} against {}; {}", exception.gain < 0 ? "breaks" : "holds", exception.where,
                     study::gain_text(rule, exception.gain), exception.is_measured ? " as measured" : "",
                     text_of(job, exception.follows.layout), text_of(job, exception.other.layout), exception.reason);
}

std::string outcome_text(const spec::Job& job, const Outcome& outcome) {
  const study::Rule& rule = *outcome.rule;
  const std::optional<double> gain = outcome.known_gain();
  const std::string by = gain ? "  " + study::gain_text(rule, *gain) : "";
  std::string text = fmt::format("{:<15} {}{}\n", study::name_of(outcome.verdict), rule.id, by);
  text += line(std::string(rule.statement));
  const char* against = rule.is_comparison() ? "against" : "the best is";
  if (outcome.measured) {
    text += line(fmt::format("measured in this very job: {}; {} {}", measured_text(job, outcome.measured->follows),
                             against, measured_text(job, outcome.measured->other)));
  }
  if (outcome.gain) {
    text += line(fmt::format("{}{}; {} {}", outcome.measured ? "by price: " : "", priced_text(job, *outcome.follows),
                             against, priced_text(job, *outcome.other)));
  }
  text += line(outcome.reason);
  for (const study::Exception& exception : outcome.exceptions) {
    text += line(exception_text(job, rule, exception));
  }
  return text;
}

std::string pairs_text(const Evidence& evidence) {
  std::string text = fmt::format("{} of {} pairs agree", evidence.num_agreeing(), evidence.pairs.size());
  if (const auto median = evidence.median_gain()) text += ", median " + study::gain_text(*evidence.rule, *median);
  if (evidence.num_only_follows_fits > 0) text += fmt::format("; in {} only it fits", evidence.num_only_follows_fits);
  if (evidence.num_only_breaks_fits > 0) {
    text += fmt::format("; in {} only the other fits", evidence.num_only_breaks_fits);
  }
  return text;
}

std::string best_text(const Evidence& evidence) {
  if (evidence.best.empty()) return "";
  const auto median = study::gain_text(*evidence.rule, *evidence.median_best_gain());
  if (evidence.rule->is_comparison()) {
    return fmt::format("; the fastest of a sweep agrees in {} of {}, median {}", evidence.num_best_agreeing(),
                       evidence.best.size(), median);
  }
  return fmt::format("within 5 % of the fastest in {} of {} sweeps, median {}", evidence.num_best_agreeing(),
                     evidence.best.size(), median);
}

std::string evidence_text(const Evidence& evidence) {
  const bool has_pairs = !evidence.pairs.empty() || evidence.num_only_follows_fits + evidence.num_only_breaks_fits > 0;
  if (!has_pairs && evidence.best.empty()) return line("measured: no run bears on it");
  std::string text = line("measured: " + (evidence.rule->is_comparison() ? pairs_text(evidence) : std::string()) +
                          best_text(evidence));
  const std::vector<Pair> exceptions = evidence.exceptions();
  for (size_t i = 0; i < std::min(kExceptionsInText, exceptions.size()); ++i) {
    const Pair& pair = exceptions[i];
    text += line(fmt::format("except {}: {} {:.4g} s, {} {:.4g} s ({})", pair.sweep, pair.follows.text,
                             pair.follows.seconds, pair.breaks.text, pair.breaks.seconds,
                             study::gain_text(*evidence.rule, pair.gain)));
  }
  if (exceptions.size() > kExceptionsInText) {
    text += line(fmt::format("and {} more exceptions (--json has them)", exceptions.size() - kExceptionsInText));
  }
  return text;
}

ordered_json differences_json(const std::vector<search::Difference>& terms) {
  auto json = ordered_json::object();
  for (const search::Difference& term : terms) json[std::string(term.what)] = {term.first, term.second};
  return json;
}

ordered_json json_of(const Pair& pair) {
  return {
      {"sweep", pair.sweep},        {"follows", pair.follows.text},          {"follows_seconds", pair.follows.seconds},
      {"breaks", pair.breaks.text}, {"breaks_seconds", pair.breaks.seconds}, {"gain", pair.gain}};
}

ordered_json value_or_null(const std::optional<double>& value) { return value ? ordered_json(*value) : nullptr; }

ordered_json json_of(const Evidence& evidence) {
  ordered_json json = {{"num_pairs", evidence.pairs.size()},
                       {"num_agreeing", evidence.num_agreeing()},
                       {"median_gain", value_or_null(evidence.median_gain())},
                       {"num_only_follows_fits", evidence.num_only_follows_fits},
                       {"num_only_breaks_fits", evidence.num_only_breaks_fits},
                       {"num_best", evidence.best.size()},
                       {"num_best_agreeing", evidence.num_best_agreeing()},
                       {"median_best_gain", value_or_null(evidence.median_best_gain())}};
  json["best"] = ordered_json::array();
  for (const Pair& pair : evidence.best) json["best"].push_back(json_of(pair));
  json["exceptions"] = ordered_json::array();
  const std::vector<Pair> exceptions = evidence.exceptions();
  for (size_t i = 0; i < std::min(kExceptionsInJson, exceptions.size()); ++i) {
    json["exceptions"].push_back(json_of(exceptions[i]));
  }
  return json;
}

}  // namespace

ordered_json json_of(const spec::Job& job, const Outcome& outcome) {
  ordered_json json = {{"rule", outcome.rule->id},
                       {"kind", outcome.rule->is_comparison() ? "comparison" : "prescription"},
                       {"verdict", study::name_of(outcome.verdict)},
                       {"gain", value_or_null(outcome.known_gain())},
                       {"gain_by_price", value_or_null(outcome.gain)}};
  json["follows"] = outcome.follows ? json_of(job, *outcome.follows) : ordered_json();
  json["other"] = outcome.other ? json_of(job, *outcome.other) : ordered_json();
  json["measured_here"] = ordered_json();
  if (outcome.measured) {
    json["measured_here"] = {{"follows", text_of(job, outcome.measured->follows.layout)},
                             {"follows_seconds", *outcome.measured->follows.measured_seconds},
                             {"other", text_of(job, outcome.measured->other.layout)},
                             {"other_seconds", *outcome.measured->other.measured_seconds},
                             {"gain", outcome.measured->gain}};
  }
  json["seconds"] = differences_json(outcome.seconds);
  json["bytes"] = differences_json(outcome.bytes);
  json["reason"] = outcome.reason;
  json["exceptions"] = ordered_json::array();
  for (const study::Exception& exception : outcome.exceptions) {
    json["exceptions"].push_back({{"where", exception.where},
                                  {"gain", exception.gain},
                                  {"is_measured", exception.is_measured},
                                  {"follows", text_of(job, exception.follows.layout)},
                                  {"other", text_of(job, exception.other.layout)},
                                  {"reason", exception.reason}});
  }
  return json;
}

std::string advice_text(const study::Advice& advice, const std::optional<study::EvidenceSummary>& evidence) {
  std::string text;
  std::string_view source;
  for (size_t i = 0; i < study::rules().size(); ++i) {
    const study::Rule& rule = study::rules()[i];
    if (rule.source != source) text += fmt::format("\n{}\n\n", rule.source);
    source = rule.source;
    text += advice.outcomes.empty() ? fmt::format("{}\n", rule.id) + line(std::string(rule.statement))
                                    : outcome_text(*advice.job, advice.outcomes[i]);
    if (evidence) text += evidence_text(evidence->rules[i]);
  }
  if (evidence) {
    text += fmt::format("\nmeasured: {} runs of {} sweeps; {} others are unscored, incomplete or ended otherwise\n",
                        base::format_count(evidence->num_runs), base::format_count(evidence->num_sweeps),
                        base::format_count(evidence->num_unused));
  }
  return text;
}

ordered_json advice_json(const study::Advice& advice, const std::optional<study::EvidenceSummary>& evidence) {
  const spec::Job& job = *advice.job;
  ordered_json json;
  json["schema_version"] = 1;
  json["job"] = json_of(job);
  json["engine"] = job.engine.name;
  json["calibration"] = job.calibration.name;
  json["num_legal"] = advice.num_legal;
  json["num_fit"] = advice.num_fit;
  json["best"] = advice.best ? json_of(job, *advice.best) : ordered_json();
  if (!advice.best) json["why_nothing_fits"] = advice.why_nothing_fits;
  json["rules"] = ordered_json::array();
  for (size_t i = 0; i < study::rules().size(); ++i) {
    const study::Rule& rule = study::rules()[i];
    ordered_json entry = advice.outcomes.empty() ? ordered_json{{"rule", rule.id}} : json_of(job, advice.outcomes[i]);
    entry["statement"] = rule.statement;
    entry["source"] = rule.source;
    if (evidence) entry["measured"] = json_of(evidence->rules[i]);
    json["rules"].push_back(entry);
  }
  if (evidence) {
    json["measured"] = {
        {"num_runs", evidence->num_runs}, {"num_unused", evidence->num_unused}, {"num_sweeps", evidence->num_sweeps}};
  }
  return json;
}

}  // namespace layline::app
