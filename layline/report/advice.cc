#include "layline/report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "layline/report/cells.h"
#include "layline/report/study_table.h"
#include "layline/spec/registry.h"
#include "layline/study/advice.h"
#include "layline/study/rule.h"
#include "layline/study/tables.h"

namespace layline::report {
namespace {

constexpr const char* kPairs = "pairs";
constexpr size_t kExceptions = 5;  // of a rule

Table statements() {
  Table table{.title = "The rules",
              .columns = {text_column("rule"), text_column("what it says"), text_column("source")}};
  for (const study::Rule& rule : study::rules()) {
    table.rows.push_back({std::string(rule.id), std::string(rule.statement), std::string(rule.source)});
  }
  return table;
}

Dataset pairs_dataset(const study::EvidenceSummary& evidence) {
  Dataset pairs{.fields = {"rule", "sweep", "gain", "outcome", "with_it", "without_it"}};
  for (const study::Evidence& e : evidence.rules) {
    for (const study::Pair& pair : e.pairs) {
      pairs.rows.push_back({std::string(e.rule->id), pair.sweep, number_or_null(pair.gain),
                            pair.gain > 0 ? "agrees" : "is an exception", pair.follows.text, pair.breaks.text});
    }
  }
  return pairs;
}

Chart pairs_chart(const study::EvidenceSummary& evidence) {
  std::vector<std::string> rules;
  for (const study::Evidence& e : evidence.rules) {
    if (!e.pairs.empty()) rules.emplace_back(e.rule->id);
  }
  return {
      .id = "advice-pairs",
      .title = "Pairs of runs that differ only in what a rule speaks of",
      .description = "A point for each pair that ran: right of zero the rule is right. The filters do not act on it.",
      .spec = gains_spec(kPairs, rules, "outcome",
                         {{"rule", "rule"}, {"sweep", "sweep"}, {"with_it", "with it"}, {"without_it", "without it"}}),
      .table = table_of(study::evidence_table(evidence), "What measured runs say")};
}

Table exceptions(const study::EvidenceSummary& evidence) {
  Table table{.title = "The largest exceptions"};
  for (const study::Evidence& e : evidence.rules) {
    const study::Table own = study::exceptions_table(e, kExceptions);
    if (table.columns.empty()) {
      table.columns.push_back(text_column("rule"));
      for (const std::string& title : own.columns) table.columns.push_back(text_column(title));
    }
    for (std::vector<std::string> row : own.rows) {
      row.insert(row.begin(), std::string(e.rule->id));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// A row a rule, a column a job, with the calibration that is shipped for it.
Table by_price(const RunList& runs) {
  Table table{.title = "What the planner says of them at each job",
              .columns = {text_column("rule")},
              .note =
                  "How much longer a step of the fastest layout takes that breaks the rule, both by price; of a rule "
                  "that names a layout, how much slower that one is than the best."};
  std::vector<study::Advice> all;
  for (const JobGroup& group : jobs_of(runs)) {
    const auto known = std::find_if(group.runs.begin(), group.runs.end(), [](const ReportRun* r) { return r->job; });
    if (known == group.runs.end()) continue;
    spec::Job job = *(*known)->job;
    job.calibration = spec::default_calibration(job.engine, job.cluster);
    all.push_back(study::advise_by_price(job, nullptr));
    table.columns.push_back(text_column(group.name));
  }
  for (size_t i = 0; i < study::rules().size(); ++i) {
    const study::Rule& rule = study::rules()[i];
    std::vector<std::string> row = {std::string(rule.id)};
    for (const study::Advice& one : all) {
      if (one.outcomes.empty()) {
        row.emplace_back("nothing fits");
        continue;
      }
      const study::Outcome& outcome = one.outcomes[i];
      const std::string verdict(study::name_of(outcome.verdict));
      row.push_back(outcome.gain ? fmt::format("{}, {}", verdict, study::gain_text(rule, *outcome.gain)) : verdict);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Section advice(const study::EvidenceSummary& evidence, const RunList& runs, std::map<std::string, Dataset>& datasets) {
  Section section{.id = "advice", .title = "The advice, tested"};
  section.text.push_back(fmt::format(
      "Each recommendation, and each rule of thumb in circulation, is held against pairs of runs of one sweep that "
      "differ in nothing else: {} runs of {} sweeps. What the planner says of it comes from prices alone.",
      evidence.num_runs, evidence.num_sweeps));
  datasets[kPairs] = pairs_dataset(evidence);
  section.charts.push_back(pairs_chart(evidence));
  section.tables.push_back(statements());
  section.tables.push_back(exceptions(evidence));
  section.tables.push_back(by_price(runs));
  return section;
}

}  // namespace layline::report
