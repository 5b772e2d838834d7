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

constexpr size_t kMaxRows = 40;

bool is_judged(const ReportRun& run) { return run.prediction && (run.is_ok || run.is_oom); }
bool fits(const ReportRun& run) { return run.prediction->verdict == calibrate::Verdict::kFits; }

json map_spec(const std::vector<std::string>& jobs) {
  json spec = chart_spec(kRunsDataset);
  spec["transform"] = {
      one_of_transform("job", jobs),
      filter_transform("isValid(datum.margin_gib) && (datum.status === 'ok' || datum.status === 'oom')"),
      {{"calculate", "datum.status === 'ok' ? 'ran' : 'out of memory'"}, {"as", "came out"}},
      // Points of a row are spread over its height, the same way every time.
      {{"calculate", "(datum.i * 0.6180339887) % 1"}, {"as", "spread"}}};
  json y = category("job", "");
  y["sort"] = jobs;
  y["axis"] = {{"labelLimit", 240}};
  json x = quantity("margin_gib", "predicted margin, GiB (symmetric log scale)");
  x["scale"] = {{"type", "symlog"}, {"constant", 5}};
  x["axis"] = {{"values", {-1000, -300, -100, -30, -10, 0, 10, 30, 100}}};
  json what = category("came out", "");
  what["scale"] = {{"domain", {"ran", "out of memory"}}};
  json shape = what;
  shape["scale"]["range"] = {"circle", "cross"};
  json details = run_tooltip();
  details.push_back({{"field", "margin_gib"}, {"title", "margin, GiB"}, {"format", ".1f"}});
  details.push_back({{"field", "fit_probability"}, {"title", "probability to fit"}, {"format", ".0%"}});
  json offset = {{"field", "spread"}, {"type", "quantitative"}, {"scale", {{"domain", {-0.15, 1.15}}}}};
  const json points = {
      {"mark", {{"type", "point"}, {"filled", true}, {"size", 30}, {"opacity", 0.75}}},
      {"encoding", {{"x", x}, {"y", y}, {"yOffset", offset}, {"color", what}, {"shape", shape}, {"tooltip", details}}}};
  const json limit = {{"mark", {{"type", "rule"}, {"style", "prediction"}}}, {"encoding", {{"x", {{"datum", 0}}}}}};
  spec["layer"] = {limit, points};
  spec["height"] = {{"step", 44}, {"for", "position"}};
  return spec;
}

Table map_table(const std::vector<JobGroup>& jobs) {
  Table table;
  table.title = "Verdicts on memory against what came out";
  table.columns = {text_column("job"),
                   number_column("ran, said to fit"),
                   number_column("out of memory, said so"),
                   number_column("ran, said to be out"),
                   number_column("out, said to fit"),
                   number_column("least margin that ran, GiB"),
                   number_column("largest margin that was out, GiB"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (const JobGroup& job : jobs) {
    int64_t right_fit = 0, right_out = 0, false_alarms = 0, false_fits = 0;
    std::optional<double> least_that_ran, largest_that_was_out;
    for (const ReportRun* run : job.runs) {
      const double margin = run->prediction->margin_bytes;
      (run->is_ok ? (fits(*run) ? right_fit : false_alarms) : (fits(*run) ? false_fits : right_out)) += 1;
      if (run->is_ok) {
        least_that_ran = std::min(least_that_ran.value_or(margin), margin);
      } else {
        largest_that_was_out = std::max(largest_that_was_out.value_or(margin), margin);
      }
    }
    table.rows.push_back({job.name, count_cell(right_fit), count_cell(right_out), count_cell(false_alarms),
                          count_cell(false_fits), gib_cell(least_that_ran), gib_cell(largest_that_was_out),
                          job.runs.front()->model, fmt::format("{}", job.runs.front()->num_gpus)});
  }
  return table;
}

// Predicted to fit or not, and the other way in fact; the surest mistakes first.
Table wrong_table(const RunList& judged) {
  constexpr size_t kMost = 30;
  RunList wrong = those(judged, [](const ReportRun& run) { return fits(run) != run.is_ok; });
  std::stable_sort(wrong.begin(), wrong.end(), [](const ReportRun* a, const ReportRun* b) {
    return std::abs(a->prediction->margin_bytes) > std::abs(b->prediction->margin_bytes);
  });
  Table table;
  table.title = "Wrong verdicts";
  table.columns = {text_column("job"),
                   text_column("layout"),
                   text_column("kernel", "kernel"),
                   text_column("came out"),
                   number_column("predicted margin, GiB"),
                   number_column("probability to fit, %"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (size_t i = 0; i < wrong.size() && i < kMost; ++i) {
    const ReportRun& run = *wrong[i];
    table.rows.push_back({run.job_name, run.layout_text, run.kernel, run.is_ok ? "ran" : "out of memory",
                          gib_cell(run.prediction->margin_bytes), percent_cell(run.prediction->fit_probability, 0),
                          run.model, fmt::format("{}", run.num_gpus)});
  }
  if (wrong.size() > kMost) table.note = fmt::format("The {} furthest off of {}.", kMost, wrong.size());
  return table;
}

}  // namespace

Section out_of_memory(const RunList& runs) {
  Section section{.id = "memory-verdicts", .title = "What fits"};
  const RunList judged = those(runs, is_judged);
  if (judged.empty()) {
    section.text.push_back(
        "No run both has a predicted verdict and is known to have run or to have run out of memory.");
    return section;
  }
  const std::vector<JobGroup> jobs = jobs_of(judged);
  const RunList wrong = those(judged, [](const ReportRun& run) { return fits(run) != run.is_ok; });
  section.text.push_back(fmt::format("The verdict is right for {} of {} runs.",
                                     count_cell(static_cast<int64_t>(judged.size() - wrong.size())),
                                     count_cell(static_cast<int64_t>(judged.size()))));
  Chart chart{.id = "memory-verdicts",
              .title = "Predicted margin of memory against what came out",
              .description =
                  "A point a run; right of the line it is predicted to fit. Circles ran, crosses ran out of "
                  "memory: crosses on the right and circles on the left are mistakes.",
              .spec = map_spec(largest_jobs(jobs, kMaxRows)),
              .table = map_table(jobs)};
  if (jobs.size() > kMaxRows) {
    chart.description +=
        fmt::format(" The {} jobs with the most runs are drawn; the table has all {}.", kMaxRows, jobs.size());
  }
  section.charts.push_back(std::move(chart));
  if (Table table = wrong_table(judged); !table.empty()) section.tables.push_back(std::move(table));
  return section;
}

}  // namespace layline::report
