#include "layline/report/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace layline::report {
namespace {

auto order_of(const JobGroup& group) {
  const ReportRun& run = *group.runs.front();
  const double parameters =
      run.job ? static_cast<double>(run.job->model.num_parameters()) : std::numeric_limits<double>::infinity();
  return std::make_tuple(parameters, run.record->seq_len.value_or(0), run.num_gpus, group.name);
}

}  // namespace

std::vector<JobGroup> jobs_of(const RunList& runs) {
  std::vector<JobGroup> groups;
  if (runs.empty()) return groups;
  for (auto& [name, members] : by(runs, [](const ReportRun& run) { return run.job_name; })) {
    groups.push_back({name, members});
  }
  std::sort(groups.begin(), groups.end(),
            [](const JobGroup& a, const JobGroup& b) { return order_of(a) < order_of(b); });
  return groups;
}

RunList all_of(const std::vector<ReportRun>& runs) {
  RunList list;
  for (const ReportRun& run : runs) list.push_back(&run);
  return list;
}

RunList those(const RunList& runs, const std::function<bool(const ReportRun&)>& keep) {
  RunList kept;
  for (const ReportRun* run : runs) {
    if (keep(*run)) kept.push_back(run);
  }
  return kept;
}

const ReportRun* fastest(const RunList& runs) {
  const ReportRun* best = nullptr;
  for (const ReportRun* run : runs) {
    if (run->seconds && (best == nullptr || *run->seconds < *best->seconds)) best = run;
  }
  return best;
}

const ReportRun* predicted_fastest(const RunList& runs) {
  const ReportRun* best = nullptr;
  for (const ReportRun* run : runs) {
    if (!run->prediction || run->prediction->verdict != calibrate::Verdict::kFits) continue;
    if (best == nullptr || run->prediction->step_seconds < best->prediction->step_seconds) best = run;
  }
  return best;
}

std::vector<std::string> largest_jobs(const std::vector<JobGroup>& jobs, size_t most) {
  std::vector<size_t> order(jobs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return jobs[a].runs.size() > jobs[b].runs.size(); });
  if (order.size() > most) order.resize(most);
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const size_t i : order) names.push_back(jobs[i].name);
  return names;
}

std::string short_layout(const ReportRun& run) {
  if (!run.job) return run.layout_text;
  const layout::Layout& layout = run.layout;
  std::string text = fmt::format("tp{} pp{} mb{}", layout.tp, layout.pp, layout.mb);
  if (layout.cp > 1) text += fmt::format(" cp{}", layout.cp);
  if (layout.vp > 1) text += fmt::format(" vp{}", layout.vp);
  if (layout.sp) text += " sp";
  return text;
}

std::string checkpointing_text(const ReportRun& run) {
  if (!run.job) return run.record->recompute.empty() ? "not stated" : run.record->recompute;
  switch (run.layout.checkpointing) {
    case layout::Checkpointing::kNone:
      return "none";
    case layout::Checkpointing::kSelective:
      return "selective";
    case layout::Checkpointing::kFull:
      break;
  }
  return "full";
}

}  // namespace layline::report
