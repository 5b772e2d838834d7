#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

const char* const kTimed = "datum.ran && isValid(datum.seconds) && isValid(datum.predicted_seconds)";

json log_seconds(const std::string& field, const std::string& title) {
  json channel = quantity(field, title);
  channel["scale"] = {{"type", "log"}, {"nice", false}};
  channel["axis"] = {{"format", "~g"}, {"tickCount", 6}};
  return channel;
}

json scatter_spec() {
  json spec = chart_spec(kRunsDataset);
  spec["transform"] = {filter_transform(kTimed)};
  const json points = {{"mark", {{"type", "point"}, {"filled", true}, {"size", 28}, {"opacity", 0.65}}},
                       {"encoding",
                        {{"x", log_seconds("seconds", "measured, s")},
                         {"y", log_seconds("predicted_seconds", "predicted, s")},
                         {"color", category("model", "")},
                         {"tooltip", run_tooltip()}}}};
  const json line = {
      {"mark", {{"type", "line"}, {"style", "prediction"}, {"strokeWidth", 1.5}}},
      {"encoding", {{"x", log_seconds("seconds", "measured, s")}, {"y", log_seconds("seconds", "predicted, s")}}}};
  spec["layer"] = {line, points};
  spec["height"] = 340;
  return spec;
}

json residual_spec() {
  json spec = chart_spec(kRunsDataset);
  spec["transform"] = {filter_transform(kTimed)};
  json error = percent("error", "predicted / measured − 1");
  error["axis"] = {{"format", "+.0%"}};
  const json points = {{"mark", {{"type", "point"}, {"filled", true}, {"size", 28}, {"opacity", 0.65}}},
                       {"encoding",
                        {{"x", log_seconds("seconds", "measured, s")},
                         {"y", error},
                         {"color", category("model", "")},
                         {"tooltip", run_tooltip()}}}};
  const json zero = {{"mark", {{"type", "rule"}, {"style", "prediction"}}}, {"encoding", {{"y", {{"datum", 0}}}}}};
  spec["layer"] = {zero, points};
  spec["height"] = 260;
  return spec;
}

Table scores_table(const calibrate::Validation& validation) {
  Table table;
  table.title = "How good the predictions are";
  table.columns = {text_column("sweep"),
                   number_column("runs"),
                   number_column("timed"),
                   number_column("mean error, %"),
                   number_column("median error, %"),
                   number_column("bias, %"),
                   number_column("Spearman"),
                   number_column("first pick loses, %"),
                   number_column("verdicts right, %"),
                   number_column("false fits"),
                   number_column("false alarms"),
                   number_column("memory error, %")};
  table.note =
      "Over the scored runs. Spearman: rank correlation of predicted and measured times. First pick: what is "
      "predicted to be fastest and to fit, against the fastest. False fits ran out of memory, false alarms ran.";
  const auto row = [&](const std::string& name, const calibrate::Scores& s) {
    table.rows.push_back({name, count_cell(s.num_runs), count_cell(s.num_timed),
                          percent_cell(s.mean_abs_relative_error), percent_cell(s.median_abs_relative_error),
                          signed_percent_cell(s.bias), s.spearman ? fmt::format("{:.3f}", *s.spearman) : kNone,
                          percent_cell(s.top1_regret), percent_cell(s.oom_accuracy), count_cell(s.false_fits),
                          count_cell(s.false_alarms), percent_cell(s.memory_median_abs_relative_error)});
  };
  for (const auto& [name, scores] : validation.sweeps) {
    if (scores.num_timed > 0 || scores.oom_accuracy) row(name, scores);
  }
  row("all", validation.overall);
  return table;
}

// The runs that lie furthest from their prediction.
Table worst_table(const RunList& runs) {
  constexpr size_t kMost = 15;
  RunList order = those(runs, [](const ReportRun& run) { return run.relative_error().has_value(); });
  std::stable_sort(order.begin(), order.end(), [](const ReportRun* a, const ReportRun* b) {
    return std::abs(std::log1p(*a->relative_error())) > std::abs(std::log1p(*b->relative_error()));
  });
  Table table;
  table.title = "Runs furthest from their prediction";
  table.columns = {text_column("job"),
                   text_column("layout"),
                   text_column("kernel", "kernel"),
                   number_column("step, s"),
                   number_column("predicted, s"),
                   number_column("error, %"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (size_t i = 0; i < order.size() && i < kMost; ++i) {
    const ReportRun& run = *order[i];
    table.rows.push_back({run.job_name, run.layout_text, run.kernel, seconds_cell(run.seconds),
                          seconds_cell(predicted_seconds(run)), signed_percent_cell(run.relative_error()), run.model,
                          fmt::format("{}", run.num_gpus)});
  }
  return table;
}

std::string scores_text(const calibrate::Scores& s) {
  std::string text = fmt::format("{} runs have a time and a prediction", count_cell(s.num_timed));
  if (s.mean_abs_relative_error) {
    text += fmt::format("; their step times are off by {} % on average and {} % in the median",
                        percent_cell(s.mean_abs_relative_error), percent_cell(s.median_abs_relative_error));
  }
  if (s.error_bar_coverage) {
    text += fmt::format("; {} % of them lie within the error bar", percent_cell(s.error_bar_coverage));
  }
  text += ".";
  if (s.oom_accuracy) {
    text += fmt::format(" Whether a layout fits is right in {} % of the runs that ran or ran out of memory.",
                        percent_cell(s.oom_accuracy));
  }
  return text;
}

}  // namespace

Section accuracy(const RunList& runs, const calibrate::Validation& validation) {
  Section section{.id = "accuracy", .title = "Predicted against measured"};
  const RunList timed = those(runs, [](const ReportRun& run) { return run.relative_error().has_value(); });
  if (timed.empty()) {
    section.text.push_back("No run has both a time and a prediction.");
    return section;
  }
  section.text.push_back(scores_text(validation.overall));
  section.charts.push_back({.id = "predicted-measured",
                            .title = "Predicted against measured step times",
                            .description = "A point a run, both axes logarithmic; on the line, prediction and "
                                           "measurement are equal.",
                            .spec = scatter_spec(),
                            .table = scores_table(validation)});
  section.charts.push_back({.id = "residuals",
                            .title = "Errors of the predicted step times",
                            .description = "A point a run: above zero the run was faster than predicted, below it was "
                                           "slower.",
                            .spec = residual_spec(),
                            .table = worst_table(timed)});
  return section;
}

}  // namespace layline::report
