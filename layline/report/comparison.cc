#include "layline/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "layline/report/cells.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr size_t kMaxCells = 24;
constexpr size_t kMaxExceptions = 6;

struct Group {
  std::string job, kernel;
  std::map<std::string, RunList> choices;  // of runs that ran
};

bool shorter_first(const std::string& a, const std::string& b) {
  return std::make_pair(a.size(), a) < std::make_pair(b.size(), b);
}

std::vector<Group> groups_of(const RunList& runs, const Comparison& comparison) {
  std::vector<Group> groups;
  const RunList ran = those(runs, [](const ReportRun& run) { return run.mfu.has_value(); });
  for (const JobGroup& job : jobs_of(ran)) {
    const auto kernels =
        by(job.runs, [&](const ReportRun& run) { return comparison.within_kernel ? run.kernel : std::string(); });
    for (const auto& [kernel, members] : kernels) {
      Group group{job.name, kernel, by(members, comparison.choice_of)};
      if (group.choices.size() > 1) groups.push_back(std::move(group));
    }
  }
  return groups;
}

Table table_of(const std::vector<BestOfChoice>& best, const Comparison& comparison) {
  Table table;
  table.title = comparison.chart_title;
  table.columns = {text_column("job"),
                   text_column("kernel", "kernel"),
                   text_column(comparison.choice),
                   text_column("best layout"),
                   number_column("step, s"),
                   number_column("MFU, %"),
                   number_column("predicted, s"),
                   number_column("predicted MFU, %"),
                   number_column("error, %"),
                   text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (const BestOfChoice& entry : best) {
    const ReportRun& run = *entry.run;
    table.rows.push_back({entry.job, run.kernel, entry.choice, short_layout(run), seconds_cell(run.seconds),
                          percent_cell(run.mfu), seconds_cell(predicted_seconds(run)), percent_cell(run.predicted_mfu),
                          signed_percent_cell(run.relative_error()), run.model, fmt::format("{}", run.num_gpus)});
  }
  return table;
}

// Bars of the measured MFU with a mark where the prediction is.
json spec_of(const RunList& runs, const Comparison& comparison) {
  json spec = chart_spec(kRunsDataset);
  std::vector<std::string> group_fields = {"job", comparison.field};
  if (comparison.within_kernel) group_fields.insert(group_fields.begin() + 1, "kernel");
  const std::vector<std::string> jobs = largest_jobs(jobs_of(runs), kMaxCells);
  json transform = json::array({one_of_transform("job", jobs)});
  for (json& part : best_of_transform(group_fields)) transform.push_back(std::move(part));
  spec["transform"] = transform;
  json y = category(comparison.within_kernel ? "kernel" : comparison.field,
                    comparison.within_kernel ? "" : comparison.choice);
  y["sort"] = "ascending";
  json encoding = {{"y", y}};
  if (comparison.within_kernel) encoding["yOffset"] = {{"field", comparison.field}, {"type", "nominal"}};
  json bar = {{"mark", {{"type", "bar"}}}, {"encoding", {{"x", percent("mfu", "MFU")}, {"tooltip", run_tooltip()}}}};
  bar["encoding"]["x"]["scale"] = {{"zero", true}};
  if (comparison.within_kernel) bar["encoding"]["color"] = category(comparison.field, comparison.choice);
  const json mark = {{"mark", {{"type", "tick"}, {"thickness", 3}, {"style", "prediction"}}},
                     {"encoding", {{"x", percent("predicted_mfu", "MFU")}}}};
  spec["layer"] = {bar, mark};
  spec["encoding"] = encoding;
  spec["height"] = {{"step", comparison.within_kernel ? 14 : 24}};
  return facet(spec, "job", jobs, 240, comparison.within_kernel ? 190 : (comparison.field == "kernel" ? 190 : 60));
}

// The choice whose runs hold the least value, and that value.
template <typename Value>
std::pair<std::string, double> least(const Group& group, Value&& value) {
  std::pair<std::string, double> best{"", INFINITY};
  for (const auto& [choice, members] : group.choices) {
    for (const ReportRun* run : members) {
      const double own = value(*run);
      if (own < best.second) best = {choice, own};
    }
  }
  return best;
}

std::string exception_text(const Group& group, const std::string& measured, const std::string& predicted) {
  const double loss =
      *fastest(group.choices.at(predicted))->seconds / *fastest(group.choices.at(measured))->seconds - 1;
  const std::string kernel = group.kernel.empty() ? "" : " with " + group.kernel;
  return fmt::format("{}{}: {} was best, {} is predicted, which costs {:.1f} %", group.job, kernel, measured, predicted,
                     100 * loss);
}

}  // namespace

std::string agreement_text(const Agreement& agreement, const Comparison& comparison) {
  std::string text = fmt::format(
      "Measured and predicted best have {} in {} of {} comparisons; the MFU of the runs shown is predicted "
      "within {:.1f} points on average.",
      comparison.question, agreement.num_same, agreement.num_groups, 100 * agreement.mean_abs_mfu_difference);
  for (size_t i = 0; i < agreement.exceptions.size() && i < kMaxExceptions; ++i) {
    text += (i == 0 ? " Where they differ: " : "; ") + agreement.exceptions[i];
  }
  if (agreement.exceptions.size() > kMaxExceptions) {
    text += fmt::format("; and {} more", agreement.exceptions.size() - kMaxExceptions);
  }
  if (!agreement.exceptions.empty()) text += ".";
  return text;
}

std::vector<BestOfChoice> best_of_choices(const RunList& runs, const Comparison& comparison) {
  std::vector<BestOfChoice> best;
  for (const Group& group : groups_of(runs, comparison)) {
    std::vector<std::string> choices;
    for (const auto& [choice, members] : group.choices) choices.push_back(choice);
    std::sort(choices.begin(), choices.end(), shorter_first);
    for (const std::string& choice : choices) {
      best.push_back({group.job, group.kernel, choice, fastest(group.choices.at(choice))});
    }
  }
  return best;
}

Agreement agreement_of(const RunList& runs, const Comparison& comparison) {
  Agreement agreement;
  double sum = 0;
  int64_t num_shown = 0;
  const RunList predicted_runs = those(runs, [](const ReportRun& run) { return run.prediction.has_value(); });
  for (const Group& group : groups_of(predicted_runs, comparison)) {
    const auto measured = least(group, [](const ReportRun& run) { return *run.seconds; });
    const auto predicted = least(group, [](const ReportRun& run) { return run.prediction->step_seconds; });
    ++agreement.num_groups;
    if (measured.first == predicted.first) {
      ++agreement.num_same;
    } else {
      agreement.exceptions.push_back(exception_text(group, measured.first, predicted.first));
    }
    for (const auto& [choice, members] : group.choices) {
      const ReportRun* best = fastest(members);
      sum += std::abs(*best->predicted_mfu - *best->mfu);
      ++num_shown;
    }
  }
  if (num_shown > 0) agreement.mean_abs_mfu_difference = sum / static_cast<double>(num_shown);
  return agreement;
}

Section comparison_section(const RunList& runs, const Comparison& comparison) {
  Section section{.id = comparison.id, .title = comparison.title};
  const std::vector<BestOfChoice> best = best_of_choices(runs, comparison);
  if (best.empty()) {
    section.text.push_back(fmt::format(
        "No job of these runs ran with more than one {}, so there is nothing to compare.", comparison.choice));
    return section;
  }
  const Agreement agreement = agreement_of(runs, comparison);
  if (agreement.num_groups > 0) section.text.push_back(agreement_text(agreement, comparison));
  std::set<std::string> compared;
  for (const BestOfChoice& entry : best) compared.insert(entry.job);
  const RunList shown = those(runs, [&](const ReportRun& run) { return compared.count(run.job_name) != 0; });
  Chart chart{.id = comparison.id,
              .title = comparison.chart_title,
              .description =
                  "Bars: the highest measured MFU of each choice. The line across a bar: what the model "
                  "predicts for that very run.",
              .spec = spec_of(shown, comparison),
              .table = table_of(best, comparison)};
  if (compared.size() > kMaxCells) {
    chart.description +=
        fmt::format(" The {} jobs with the most runs are drawn; the table has all {}.", kMaxCells, compared.size());
  }
  section.charts.push_back(std::move(chart));
  return section;
}

}  // namespace layline::report
