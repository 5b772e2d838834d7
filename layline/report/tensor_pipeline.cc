#include <fmt/format.h>

#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/comparison.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr size_t kMaxCells = 24;

bool is_shown(const ReportRun& run) { return run.job && (run.mfu || run.is_oom); }

// The best of each tp and pp; where nothing ran, a cell that says so.
json heat_map_spec(const std::vector<std::string>& jobs) {
  json spec = chart_spec(kRunsDataset);
  const json rank = json::array({{{"op", "row_number"}, {"as", "rank"}}});
  const json sort = json::array({{{"field", "mfu"}, {"order", "descending"}}});
  spec["transform"] = {one_of_transform("job", jobs),
                       filter_transform("(datum.ran && isValid(datum.mfu)) || datum.status === 'oom'"),
                       {{"window", rank}, {"groupby", {"job", "tp", "pp"}}, {"sort", sort}},
                       filter_transform("datum.rank === 1"),
                       {{"calculate", "datum.ran ? format(100 * datum.mfu, '.0f') : 'OOM'"}, {"as", "label"}}};
  json x = category("pp", "pipeline stages"), y = category("tp", "tensor parallel");
  x["type"] = y["type"] = "ordinal";
  x["sort"] = y["sort"] = "ascending";
  x["axis"] = {{"labelAngle", 0}};
  spec["encoding"] = {{"x", x}, {"y", y}, {"tooltip", run_tooltip()}};
  json color = quantity("mfu", "MFU");
  color["legend"] = {{"format", "%"}};
  color["scale"] = {{"scheme", "viridis"}};
  const json cells = {
      {"transform", {filter_transform("datum.ran")}}, {"mark", "rect"}, {"encoding", {{"color", color}}}};
  const json empty_cells = {{"transform", {filter_transform("!datum.ran")}},
                            {"mark", {{"type", "rect"}, {"style", "nothing"}}}};
  // White on the dark half of the colours, black on the bright one, grey where there is none.
  const json ink = {
      {"condition",
       {{{"test", "!datum.ran"}, {"value", "#767676"}}, {{"test", "datum.mfu > 0.45"}, {"value", "black"}}}},
      {"value", "white"}};
  const json labels = {{"mark", {{"type", "text"}, {"fontSize", 11}}},
                       {"encoding", {{"text", {{"field", "label"}}}, {"color", ink}}}};
  spec["layer"] = {cells, empty_cells, labels};
  spec["height"] = {{"step", 28}};
  return facet(spec, "job", jobs, 200, 70);
}

Table heat_map_table(const std::vector<JobGroup>& jobs) {
  Table table;
  table.title = "Best run of each tensor and pipeline parallelism";
  table.columns = {text_column("job"),
                   number_column("tp"),
                   number_column("pp"),
                   number_column("step, s"),
                   number_column("MFU, %"),
                   number_column("predicted MFU, %"),
                   text_column("layout"),
                   text_column("kernel", "kernel"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (const JobGroup& job : jobs) {
    const auto cells = by(job.runs, [](const ReportRun& r) { return std::make_pair(r.layout.tp, r.layout.pp); });
    for (const auto& [cell, members] : cells) {
      const ReportRun* best = fastest(members);
      const ReportRun& run = best != nullptr ? *best : *members.front();
      const std::string mfu = best != nullptr ? percent_cell(run.mfu) : "out of memory";
      table.rows.push_back({job.name, fmt::format("{}", cell.first), fmt::format("{}", cell.second),
                            seconds_cell(best != nullptr ? run.seconds : std::nullopt), mfu,
                            percent_cell(run.predicted_mfu), best != nullptr ? short_layout(run) : kNone,
                            best != nullptr ? run.kernel : kNone, run.model, fmt::format("{}", run.num_gpus)});
    }
  }
  return table;
}

}  // namespace

Section tensor_against_pipeline(const RunList& runs) {
  Section section{.id = "tensor-pipeline", .title = "Tensor against pipeline parallelism"};
  std::vector<JobGroup> jobs;
  for (JobGroup& job : jobs_of(those(runs, is_shown))) {
    if (by(job.runs, [](const ReportRun& r) { return std::make_pair(r.layout.tp, r.layout.pp); }).size() > 1) {
      jobs.push_back(std::move(job));
    }
  }
  if (jobs.empty()) {
    section.text.push_back("No job ran with more than one pair of tensor and pipeline parallelism.");
    return section;
  }
  const Comparison cells{
      .choice_of = [](const ReportRun& run) { return fmt::format("tp{} pp{}", run.layout.tp, run.layout.pp); },
      .question = "the same tensor and pipeline parallelism"};
  if (const Agreement agreement = agreement_of(runs, cells); agreement.num_groups > 0) {
    section.text.push_back(agreement_text(agreement, cells));
  }
  Chart chart{.id = "tensor-pipeline",
              .title = "Best MFU by tensor and pipeline parallelism, %",
              .description =
                  "Each cell: the best MFU over micro-batches, kernels and checkpointing, in percent; OOM: "
                  "every such run was out of memory.",
              .spec = heat_map_spec(largest_jobs(jobs, kMaxCells)),
              .table = heat_map_table(jobs)};
  if (jobs.size() > kMaxCells) {
    chart.description +=
        fmt::format(" The {} jobs with the most runs are drawn; the table has all {}.", kMaxCells, jobs.size());
  }
  section.charts.push_back(std::move(chart));
  return section;
}

}  // namespace layline::report
