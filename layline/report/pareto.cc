#include <fmt/format.h>

#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr size_t kMaxCells = 12;

bool is_shown(const ReportRun& run) { return run.seconds && memory_for_pareto(run); }

json pareto_spec(const std::vector<std::string>& jobs) {
  json spec = chart_spec(kRunsDataset);
  spec["transform"] = {one_of_transform("job", jobs),
                       filter_transform("datum.ran && isValid(datum.seconds) && isValid(datum.memory_gib)")};
  json y = quantity("seconds", "step, s"), x = quantity("memory_gib", "peak memory, GiB");
  y["scale"] = {{"type", "log"}, {"nice", false}};
  y["axis"] = {{"format", "~g"}, {"tickCount", 5}};
  x["scale"] = {{"zero", false}};
  spec["encoding"] = {{"x", x}, {"y", y}};
  json color = category("kernel", "");
  color["sort"] = "ascending";
  json details = run_tooltip();
  details.push_back({{"field", "memory_gib"}, {"title", "GiB"}, {"format", ".1f"}});
  const json points = {{"mark", {{"type", "point"}, {"filled", true}, {"size", 26}, {"opacity", 0.6}}},
                       {"encoding", {{"color", color}, {"tooltip", details}}}};
  const json front = {{"transform", {filter_transform("datum.pareto")}},
                      {"mark", {{"type", "line"}, {"style", "prediction"}, {"interpolate", "step-after"}}}};
  spec["layer"] = {front, points};
  spec["height"] = 200;
  json faceted = facet(spec, "job", jobs, 280, 70);
  faceted["resolve"] = {{"scale", {{"x", "independent"}, {"y", "independent"}}}};
  faceted["usermeta"]["axis_width_of_each"] = true;
  return faceted;
}

Table pareto_table(const std::vector<JobGroup>& jobs) {
  Table table;
  table.title = "Layouts that no other run of the job beats in both time and memory";
  table.columns = {text_column("job"),       text_column("layout"),         text_column("kernel", "kernel"),
                   number_column("step, s"), number_column("MFU, %"),       number_column("peak, GiB"),
                   text_column("peak is"),   text_column("model", "model"), number_column("GPUs", "gpus")};
  for (const JobGroup& job : jobs) {
    for (const ReportRun* run : pareto_front(job.runs)) {
      table.rows.push_back({job.name, run->layout_text, run->kernel, seconds_cell(run->seconds), percent_cell(run->mfu),
                            gib_cell(memory_for_pareto(*run)), run->memory_bytes ? "measured" : "predicted", run->model,
                            fmt::format("{}", run->num_gpus)});
    }
  }
  return table;
}

}  // namespace

Section time_against_memory(const RunList& runs) {
  Section section{.id = "pareto", .title = "Time against memory"};
  std::vector<JobGroup> jobs;
  for (JobGroup& job : jobs_of(those(runs, is_shown))) {
    if (job.runs.size() > 1) jobs.push_back(std::move(job));
  }
  if (jobs.empty()) {
    section.text.push_back("No job has two runs with a step time and a peak memory, measured or predicted.");
    return section;
  }
  Chart chart{.id = "pareto",
              .title = "Step time against peak memory",
              .description =
                  "A point a run that ran; peak memory as measured where the run says so, else as predicted. "
                  "The line joins the runs that no other beats in both.",
              .spec = pareto_spec(largest_jobs(jobs, kMaxCells)),
              .table = pareto_table(jobs)};
  if (jobs.size() > kMaxCells) {
    chart.description +=
        fmt::format(" The {} jobs with the most runs are drawn; the table has all {}.", kMaxCells, jobs.size());
  }
  section.charts.push_back(std::move(chart));
  return section;
}

}  // namespace layline::report
