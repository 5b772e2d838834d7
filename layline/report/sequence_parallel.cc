#include <fmt/format.h>

#include <algorithm>

#include "layline/layout/layout_text.h"
#include "layline/report/builders.h"
#include "layline/report/cells.h"
#include "layline/report/comparison.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr const char* kPairs = "sp_pairs";
constexpr size_t kMaxPairs = 60;

struct Pair {
  std::string job, layout;
  const ReportRun* off = nullptr;
  const ReportRun* on = nullptr;
};

std::string text_without_sp(const ReportRun& run) {
  layout::Layout layout = run.layout;
  layout.sp = false;
  return layout::to_text(layout, layout::text_defaults(run.job->engine));
}

// Runs that both ran and differ in sequence parallelism only.
std::vector<Pair> pairs_of(const RunList& runs) {
  std::vector<Pair> pairs;
  for (const JobGroup& job : jobs_of(those(runs, [](const ReportRun& r) { return r.mfu && r.layout.tp > 1; }))) {
    for (const auto& [text, members] : by(job.runs, text_without_sp)) {
      Pair pair{job.name, text};
      pair.off = fastest(those(members, [](const ReportRun& run) { return !run.layout.sp; }));
      pair.on = fastest(those(members, [](const ReportRun& run) { return run.layout.sp; }));
      if (pair.off != nullptr && pair.on != nullptr) pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

std::optional<double> predicted_gain(const Pair& pair) {
  if (!pair.off->prediction || !pair.on->prediction) return std::nullopt;
  return pair.off->prediction->step_seconds / pair.on->prediction->step_seconds - 1;
}

double measured_gain(const Pair& pair) { return *pair.off->seconds / *pair.on->seconds - 1; }

Table pairs_table(const std::vector<Pair>& pairs) {
  Table table;
  table.title = "The same layout without and with sequence parallelism";
  table.columns = {text_column("job"),
                   text_column("layout"),
                   number_column("off, s"),
                   number_column("on, s"),
                   number_column("off, MFU %"),
                   number_column("on, MFU %"),
                   number_column("faster by, %"),
                   number_column("predicted, %"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus"),
                   text_column("kernel", "kernel")};
  for (const Pair& pair : pairs) {
    table.rows.push_back({pair.job, pair.layout, seconds_cell(pair.off->seconds), seconds_cell(pair.on->seconds),
                          percent_cell(pair.off->mfu), percent_cell(pair.on->mfu),
                          signed_percent_cell(measured_gain(pair)), signed_percent_cell(predicted_gain(pair)),
                          pair.off->model, fmt::format("{}", pair.off->num_gpus), pair.off->kernel});
  }
  return table;
}

Dataset pairs_dataset(const std::vector<Pair>& pairs) {
  Dataset dataset{.fields = {"job", "layout", "model", "gpus", "kernel", "gain", "predicted_gain"}};
  for (size_t i = 0; i < pairs.size() && i < kMaxPairs; ++i) {
    const Pair& pair = pairs[i];
    dataset.rows.push_back({pair.job, short_layout(*pair.off), pair.off->model, pair.off->num_gpus, pair.off->kernel,
                            number_or_null(measured_gain(pair)), number_or_null(predicted_gain(pair))});
  }
  return dataset;
}

json pairs_spec(const std::vector<Pair>& pairs) {
  json spec = chart_spec(kPairs);
  json y = category("layout", "");
  y["sort"] = "ascending";
  json measured = percent("gain", "faster with sequence parallelism");
  spec["encoding"] = {
      {"y", y},
      {"tooltip",
       tooltip({{"job", "job"}, {"layout", "layout"}, {"gain", "measured"}, {"predicted_gain", "predicted"}})}};
  const json bar = {{"mark", "bar"}, {"encoding", {{"x", measured}}}};
  const json mark = {{"mark", {{"type", "tick"}, {"thickness", 3}, {"style", "prediction"}}},
                     {"encoding", {{"x", percent("predicted_gain", "faster with sequence parallelism")}}}};
  spec["layer"] = {bar, mark};
  spec["height"] = {{"step", 20}};
  std::vector<std::string> jobs;
  for (const Pair& pair : pairs) {
    if (jobs.empty() || jobs.back() != pair.job) jobs.push_back(pair.job);
  }
  json faceted = facet(spec, "job", jobs, 300, 110);
  faceted["resolve"] = {{"scale", {{"y", "independent"}}}};
  faceted["usermeta"]["axis_width_of_each"] = true;
  return faceted;
}

std::string pairs_text(const std::vector<Pair>& pairs) {
  int64_t faster = 0, predicted_same = 0, predicted = 0;
  double sum = 0;
  for (const Pair& pair : pairs) {
    const double gain = measured_gain(pair);
    faster += gain > 0 ? 1 : 0;
    sum += gain;
    if (const auto expected = predicted_gain(pair)) {
      ++predicted;
      predicted_same += (*expected > 0) == (gain > 0) ? 1 : 0;
    }
  }
  return fmt::format(
      "{} pairs of runs differ in sequence parallelism alone. It was faster in {}, by {:+.1f} % on average; "
      "the model has the direction right in {} of {}.",
      pairs.size(), faster, 100 * sum / static_cast<double>(pairs.size()), predicted_same, predicted);
}

std::string on_or_off(const ReportRun& run) { return run.layout.sp ? "on" : "off"; }

}  // namespace

Section sequence_parallelism(const RunList& runs, Datasets& datasets) {
  Section section = comparison_section(runs, {.id = "sequence-parallelism",
                                              .title = "Sequence parallelism",
                                              .chart_title = "Best MFU with and without sequence parallelism",
                                              .choice = "sequence parallelism",
                                              .field = "sp",
                                              .choice_of = on_or_off,
                                              .question = "the same setting"});
  const std::vector<Pair> pairs = pairs_of(runs);
  if (pairs.empty()) return section;
  section.text.push_back(pairs_text(pairs));
  datasets[kPairs] = pairs_dataset(pairs);
  Chart chart{.id = "sequence-parallelism-pairs",
              .title = "What sequence parallelism gains for the same layout",
              .description =
                  "Bars: measured gain in speed of a layout with sequence parallelism over the same without. "
                  "The line: predicted gain.",
              .spec = pairs_spec(
                  {pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), kMaxPairs))}),
              .table = pairs_table(pairs)};
  if (pairs.size() > kMaxPairs) {
    chart.description += fmt::format(" The first {} pairs are drawn; the table has all {}.", kMaxPairs, pairs.size());
  }
  section.charts.push_back(std::move(chart));
  return section;
}

}  // namespace layline::report
