#include <fmt/format.h>

#include <algorithm>

#include "layline/base/units.h"
#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/report/advice.h"
#include "layline/report/cells.h"
#include "layline/report/study_table.h"
#include "layline/report/vega_spec.h"
#include "layline/study/tables.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr const char* kJobs = "jobs";
constexpr const char* kOutcomes = "outcomes";

const std::vector<std::pair<const char*, const char*>> kLists = {
    {"models", "model"}, {"clusters", "cluster"}, {"engines", "engine"}, {"sequence_lengths", "length"}};

std::vector<json> place_of(const study::StudyJob& job) {
  std::vector<json> place;
  for (const auto& [list, field] : kLists) place.emplace_back(study::plain_value(job, list));
  place.emplace_back(job.advice.job->num_gpus);
  place.emplace_back(study::plain_value(job, "global_batch_tokens"));
  return place;
}

std::vector<std::string> place_fields(const std::vector<std::string>& more) {
  std::vector<std::string> fields;
  for (const auto& [list, field] : kLists) fields.emplace_back(field);
  fields.insert(fields.end(), {"gpus", "batch"});
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

Dataset jobs_dataset(const study::Study& study) {
  Dataset jobs{.fields = place_fields({"layout", "seconds", "mfu", "memory_gib"})};
  for (const study::StudyJob& job : study.jobs) {
    if (!job.advice.best) continue;
    const search::PricedLayout& best = *job.advice.best;
    std::vector<json> row = place_of(job);
    row.emplace_back(layout::to_text(best.layout, layout::text_defaults(job.advice.job->engine)));
    row.push_back(number_or_null(best.price.step_seconds));
    row.push_back(number_or_null(cost::model_flops_utilization(*job.advice.job, best.price.step_seconds)));
    row.push_back(number_or_null(best.price.peak_memory_bytes / base::kGib));
    jobs.rows.push_back(std::move(row));
  }
  return jobs;
}

Dataset outcomes_dataset(const study::Study& study) {
  Dataset outcomes{.fields = place_fields({"rule", "verdict", "gain", "reason"})};
  for (const study::StudyJob& job : study.jobs) {
    for (const study::Outcome& outcome : job.advice.outcomes) {
      std::vector<json> row = place_of(job);
      row.emplace_back(std::string(outcome.rule->id));
      row.emplace_back(std::string(study::name_of(outcome.verdict)));
      row.push_back(number_or_null(outcome.gain));
      row.emplace_back(outcome.reason);
      outcomes.rows.push_back(std::move(row));
    }
  }
  return outcomes;
}

std::vector<std::string> values_of(const study::Study& study, const std::string& list) {
  std::vector<std::string> values;
  for (const study::StudyJob& job : study.jobs) {
    const std::string value =
        list == "gpus" ? fmt::format("{}", job.advice.job->num_gpus) : study::plain_value(job, list);
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

std::vector<Filter> filters_of(const study::Study& study) {
  std::vector<Filter> filters;
  const auto add = [&](const char* list, const char* field, const char* label) {
    std::vector<std::string> values = values_of(study, list);
    if (values.size() > 1) filters.push_back({field, label, std::move(values)});
  };
  add("models", "model", "Model");
  add("clusters", "cluster", "Cluster");
  add("engines", "engine", "Engine");
  add("sequence_lengths", "length", "Tokens of a sequence");
  add("gpus", "gpus", "GPUs");
  add("global_batch_tokens", "batch", "Tokens of a batch");
  return filters;
}

Chart best_chart(const study::Study& study) {
  json spec = chart_spec(kJobs);
  json x = quantity("gpus", "GPUs");
  x["scale"] = {{"type", "log"}, {"base", 2}, {"nice", false}};
  x["axis"] = {{"labelOverlap", true}};
  json shape = category("length", "tokens of a sequence");
  spec["mark"] = {{"type", "line"}, {"point", {{"size", 60}}}};
  spec["encoding"] = {{"x", std::move(x)},
                      {"y", percent("mfu", "MFU")},
                      {"color", category("model", "")},
                      {"strokeDash", shape},
                      {"detail", {{{"field", "engine"}}, {{"field", "batch"}}}},
                      {"shape", shape},
                      {"tooltip", tooltip({{"model", "model"},
                                           {"cluster", "cluster"},
                                           {"gpus", "GPUs"},
                                           {"length", "tokens of a sequence"},
                                           {"engine", "engine"},
                                           {"batch", "tokens of a batch"},
                                           {"layout", "layout"},
                                           {"seconds", "step, s"},
                                           {"mfu", "MFU"}})}};
  spec["height"] = 260;
  return {.id = "study-best",
          .title = "MFU of the best layout of each job, by price",
          .description = "A cell for each cluster; jobs that no layout fits have no point.",
          .spec = facet(std::move(spec), "cluster", values_of(study, "clusters"), 320, 60),
          .table = table_of(study::jobs_table(study), "The best layout of each job")};
}

study::Table columns_of(const study::Table& table, const std::vector<size_t>& columns) {
  study::Table part{table.title, {}, std::vector<std::vector<std::string>>(table.rows.size())};
  for (const size_t column : columns) {
    part.columns.push_back(table.columns[column]);
    for (size_t i = 0; i < table.rows.size(); ++i) part.rows[i].push_back(table.rows[i][column]);
  }
  return part;
}

Chart verdicts_chart(const study::Study& study, const std::vector<std::string>& rules) {
  json spec = chart_spec(kOutcomes);
  json y = category("rule", "");
  y["sort"] = rules;
  y["axis"] = {{"labelLimit", 220}};
  json x = {{"aggregate", "count"}, {"type", "quantitative"}, {"title", "jobs"}};
  json color = category("verdict", "");
  color["scale"] = {{"domain", {"holds", "no difference", "breaks", "does not apply"}},
                    {"range", {"#3f9e6e", "#9aa4b0", "#d9694f", "#c9b458"}}};
  spec["mark"] = "bar";
  spec["encoding"] = {
      {"x", std::move(x)},
      {"y", std::move(y)},
      {"color", std::move(color)},
      {"tooltip", {{{"field", "rule"}}, {{"field", "verdict"}}, {{"aggregate", "count"}, {"title", "jobs"}}}}};
  spec["height"] = {{"step", 24}};
  return {.id = "study-verdicts",
          .title = "At how many jobs each rule is true",
          .description = "Jobs that no layout fits are left out.",
          .spec = std::move(spec),
          .table = table_of(columns_of(study::rules_table(study), {0, 1, 2, 3, 4}), "Each rule over all jobs")};
}

Chart gains_chart(const study::Study& study, const std::vector<std::string>& rules) {
  return {
      .id = "study-gains",
      .title = "What each rule is worth, job by job",
      .description = "A point a job: right of zero the rule is right. A rule that names a layout is never right of it.",
      .spec = gains_spec(kOutcomes, rules, "cluster",
                         {{"rule", "rule"},
                          {"model", "model"},
                          {"gpus", "GPUs"},
                          {"length", "tokens of a sequence"},
                          {"gain", "longer without it"},
                          {"reason", "why"}}),
      .table = table_of(columns_of(study::rules_table(study), {0, 5, 6, 7}), "What each rule is worth")};
}

Section rules_section(const study::Study& study) {
  Section section{.id = "rules", .title = "The rules"};
  std::vector<std::string> rules;
  for (const study::RuleSummary& summary : study.rules) rules.emplace_back(summary.rule->id);
  Table statements{.title = "What they say",
                   .columns = {text_column("rule"), text_column("what it says"), text_column("source")}};
  for (const study::RuleSummary& s : study.rules) {
    statements.rows.push_back({std::string(s.rule->id), std::string(s.rule->statement), std::string(s.rule->source)});
  }
  section.charts.push_back(verdicts_chart(study, rules));
  section.charts.push_back(gains_chart(study, rules));
  section.tables.push_back(std::move(statements));
  return section;
}

}  // namespace

Report study_report(const study::Study& study) {
  Report report{.title = fmt::format("Study: {}", study.spec.name)};
  report.text = {fmt::format("{} jobs, all by price and none of them run; {} of them have no layout that fits.",
                             study.jobs.size(), study.num_nothing_fits),
                 "Prices are as good as the calibration of the engine on that GPU; where there is none they are "
                 "analytic and say less."};
  report.filters = filters_of(study);
  report.datasets[kJobs] = jobs_dataset(study);
  report.datasets[kOutcomes] = outcomes_dataset(study);
  report.sections.push_back({.id = "best", .title = "The best layouts", .charts = {best_chart(study)}});
  report.sections.push_back(rules_section(study));
  Section turns{.id = "turns", .title = "Where rules stop being true"};
  turns.tables.push_back(table_of(study::turns_table(study), "Where each rule turns along each list"));
  turns.tables.push_back(table_of(study::boundaries_table(study), "Neighbouring jobs of which it is true at one only"));
  if (study.boundaries.empty()) {
    turns.text.emplace_back("No rule turns along any list.");
    turns.tables.clear();
  }
  report.sections.push_back(std::move(turns));
  return report;
}

}  // namespace layline::report
