#include <fmt/format.h>

#include <algorithm>

#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr size_t kMaxBars = 40;
constexpr size_t kTop = 3;  // layouts of each job in the table

RunList fastest_first(const RunList& runs) {
  RunList timed = those(runs, [](const ReportRun& run) { return run.seconds.has_value(); });
  std::stable_sort(timed.begin(), timed.end(),
                   [](const ReportRun* a, const ReportRun* b) { return *a->seconds < *b->seconds; });
  return timed;
}

Table best_table(const std::vector<JobGroup>& jobs) {
  Table table;
  table.title = fmt::format("The {} fastest layouts of each job", kTop);
  table.columns = {text_column("job"),
                   number_column("rank"),
                   text_column("layout"),
                   text_column("kernel", "kernel"),
                   number_column("step, s"),
                   number_column("MFU, %"),
                   number_column("predicted, s"),
                   number_column("error, %"),
                   number_column("peak, GiB"),
                   number_column("margin, GiB"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  table.note = "peak: measured where the run says so, else predicted; margin: what is predicted to be left.";
  for (const JobGroup& job : jobs) {
    const RunList order = fastest_first(job.runs);
    for (size_t i = 0; i < order.size() && i < kTop; ++i) {
      const ReportRun& run = *order[i];
      const std::optional<double> margin = run.prediction ? std::optional(run.prediction->margin_bytes) : std::nullopt;
      table.rows.push_back({job.name, fmt::format("{}", i + 1), run.layout_text, run.kernel, seconds_cell(run.seconds),
                            percent_cell(run.mfu), seconds_cell(predicted_seconds(run)),
                            signed_percent_cell(run.relative_error()), gib_cell(memory_for_pareto(run)),
                            gib_cell(margin), run.model, fmt::format("{}", run.num_gpus)});
    }
  }
  return table;
}

json best_spec(const RunList& runs) {
  const std::vector<std::string> jobs = largest_jobs(jobs_of(runs), kMaxBars);
  json spec = chart_spec(kRunsDataset);
  json transform = json::array({one_of_transform("job", jobs)});
  for (json& part : best_of_transform({"job"})) transform.push_back(std::move(part));
  spec["transform"] = transform;
  json y = category("job", "");
  y["sort"] = jobs;
  y["axis"] = {{"labelLimit", 240}};
  spec["encoding"] = {{"y", y}};
  const json bar = {{"mark", "bar"}, {"encoding", {{"x", percent("mfu", "MFU")}, {"tooltip", run_tooltip()}}}};
  const json mark = {{"mark", {{"type", "tick"}, {"thickness", 3}, {"style", "prediction"}}},
                     {"encoding", {{"x", percent("predicted_mfu", "MFU")}}}};
  const json label = {{"mark", {{"type", "text"}, {"style", "inside"}}},
                      {"encoding", {{"x", {{"datum", 0}}}, {"text", {{"field", "short"}}}}}};
  spec["layer"] = {bar, mark, label};
  spec["height"] = {{"step", 26}};
  return spec;
}

// What following the model would have cost: its first pick among the runs of a job against the best of them.
std::string picks_text(const std::vector<JobGroup>& jobs) {
  int64_t num_jobs = 0, num_best = 0, num_failed = 0;
  double sum = 0, most = 0;
  for (const JobGroup& job : jobs) {
    const RunList predicted = those(job.runs, [](const ReportRun& run) { return run.prediction.has_value(); });
    const ReportRun* best = fastest(predicted);
    const ReportRun* pick = predicted_fastest(predicted);
    if (best == nullptr || pick == nullptr || predicted.size() < 2) continue;
    ++num_jobs;
    if (!pick->seconds) {
      ++num_failed;
      continue;
    }
    const double loss = *pick->seconds / *best->seconds - 1;
    if (pick == best || loss <= 0) ++num_best;
    sum += loss;
    most = std::max(most, loss);
  }
  if (num_jobs == 0) return "";
  std::string text = fmt::format(
      "Of the layouts of a job, the one that is predicted to be fastest was the fastest in {} "
      "of {} jobs",
      num_best, num_jobs);
  if (num_jobs > num_failed) {
    text += fmt::format(", and lost {:.1f} % on average ({:.1f} % at most)",
                        100 * sum / static_cast<double>(num_jobs - num_failed), 100 * most);
  }
  text += num_failed == 0 ? "; all of them ran." : fmt::format("; {} of these picks did not run.", num_failed);
  return text;
}

}  // namespace

Section best_layouts(const RunList& runs) {
  Section section{.id = "best", .title = "Best layouts"};
  const std::vector<JobGroup> jobs = jobs_of(runs);
  Table table = best_table(jobs);
  if (table.empty()) {
    section.text.push_back("No run has a step time, so none is the fastest.");
    return section;
  }
  if (std::string text = picks_text(jobs); !text.empty()) section.text.push_back(std::move(text));
  const RunList timed = those(runs, [](const ReportRun& run) { return run.mfu.has_value(); });
  if (timed.empty()) {
    section.text.push_back("No run has an MFU: it needs the model's sizes, known hardware and a step time.");
    section.tables.push_back(std::move(table));
    return section;
  }
  const size_t num_jobs = jobs_of(timed).size();
  Chart chart{.id = "best-layouts",
              .title = "MFU of the fastest layout of each job",
              .description =
                  "Bars: measured MFU of the fastest run, with its layout. The line across a bar: what the "
                  "model predicts for it.",
              .spec = best_spec(timed),
              .table = std::move(table)};
  if (num_jobs > kMaxBars) {
    chart.description +=
        fmt::format(" The {} jobs with the most runs are drawn; the table has all {}.", kMaxBars, num_jobs);
  }
  section.charts.push_back(std::move(chart));
  return section;
}

}  // namespace layline::report
