#include "layline/report/appendix.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "layline/calibrate/predict.h"
#include "layline/report/cells.h"

namespace layline::report {
namespace {

int order_of(const ReportRun& run) {
  if (run.seconds) return 0;
  if (run.is_ok) return 1;
  if (run.is_oom) return 2;
  return run.record->status == runs::RunStatus::kUnavailable ? 3 : 4;
}

std::string outcome(const ReportRun& run) {
  if (run.is_ok) return "ran";
  if (run.is_oom) return "out of memory";
  return run.record->status == runs::RunStatus::kUnavailable ? "no kernel" : run.status();
}

RunList sorted(RunList runs) {
  const auto key = [](const ReportRun& run) {
    return std::make_pair(order_of(run), run.seconds.value_or(std::numeric_limits<double>::infinity()));
  };
  std::stable_sort(runs.begin(), runs.end(), [&](const ReportRun* a, const ReportRun* b) { return key(*a) < key(*b); });
  return runs;
}

Table sweep_table(const std::string& name, const RunList& runs) {
  Table table;
  table.title = fmt::format("{} ({} runs)", name, runs.size());
  table.columns = {number_column("step, s"),     number_column("MFU, %"),
                   text_column("checkpointing"), text_column("kernel", "kernel"),
                   number_column("mb"),          number_column("tp"),
                   number_column("pp"),          text_column("sp"),
                   text_column("came out"),      number_column("predicted, s"),
                   number_column("error, %"),    text_column("predicted"),
                   number_column("margin, GiB"), text_column("model", "model"),
                   number_column("GPUs", "gpus")};
  for (const ReportRun* member : sorted(runs)) {
    const ReportRun& run = *member;
    const auto& p = run.prediction;
    const runs::RunRecord& r = *run.record;
    const auto number = [](const std::optional<int64_t>& value) { return value ? fmt::format("{}", *value) : kNone; };
    table.rows.push_back({seconds_cell(run.seconds), percent_cell(run.mfu, 2), checkpointing_text(run), run.kernel,
                          number(r.micro_batch_size), number(r.tp), number(r.pp), r.sp.value_or(false) ? "on" : "off",
                          outcome(run), seconds_cell(predicted_seconds(run)), signed_percent_cell(run.relative_error()),
                          p ? (p->verdict == calibrate::Verdict::kFits ? "fits" : "out of memory") : kNone,
                          p ? gib_cell(p->margin_bytes) : kNone, run.model, fmt::format("{}", run.num_gpus)});
  }
  return table;
}

}  // namespace

Section appendix(const RunList& runs) {
  Section section{.id = "appendix", .title = "Appendix: every run"};
  section.text.push_back("Fastest first, then what ran out of memory, had no kernel for its shape, or failed.");
  std::vector<std::string> order;
  const auto sweeps = by(runs, [](const ReportRun& run) { return run.sweep; });
  for (const JobGroup& job : jobs_of(runs)) {
    for (const ReportRun* run : job.runs) {
      if (std::find(order.begin(), order.end(), run->sweep) == order.end()) order.push_back(run->sweep);
    }
  }
  for (const std::string& sweep : order) section.tables.push_back(sweep_table(sweep, sweeps.at(sweep)));
  return section;
}

}  // namespace layline::report
