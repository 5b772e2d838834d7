#include <fmt/format.h>

#include <algorithm>

#include "layline/report/builders.h"
#include "layline/report/cells.h"

namespace layline::report {
namespace {

constexpr size_t kMaxReasons = 12;

Table files_table(const RunList& runs, const std::vector<runs::RunTable>& tables) {
  Table table;
  table.title = "Files";
  table.columns = {text_column("file"),       number_column("runs"),          number_column("ran"),
                   number_column("timed"),    number_column("out of memory"), number_column("other"),
                   number_column("predicted")};
  size_t next = 0;
  for (const runs::RunTable& file : tables) {
    int64_t ran = 0, timed = 0, out_of_memory = 0, predicted = 0;
    const size_t end = next + file.records.size();
    for (; next < end; ++next) {
      const ReportRun& run = *runs[next];
      ran += run.is_ok ? 1 : 0;
      timed += run.seconds ? 1 : 0;
      out_of_memory += run.is_oom ? 1 : 0;
      predicted += run.prediction ? 1 : 0;
    }
    const auto total = static_cast<int64_t>(file.records.size());
    table.rows.push_back({file.file, count_cell(total), count_cell(ran), count_cell(timed), count_cell(out_of_memory),
                          count_cell(total - ran - out_of_memory), count_cell(predicted)});
  }
  return table;
}

Table reasons_table(const RunList& runs) {
  std::map<std::string, int64_t> reasons;
  for (const ReportRun* run : runs) {
    if (!run->prediction) ++reasons[run->why_not_predicted];
  }
  std::vector<std::pair<int64_t, std::string>> order;
  for (const auto& [reason, count] : reasons) order.emplace_back(-count, reason);
  std::sort(order.begin(), order.end());
  Table table;
  table.title = "Not predicted";
  table.columns = {number_column("runs"), text_column("why")};
  for (const auto& [count, reason] : order) {
    if (table.rows.size() == kMaxReasons) {
      table.note = fmt::format("and {} further reasons", order.size() - kMaxReasons);
      break;
    }
    table.rows.push_back({count_cell(-count), reason});
  }
  return table;
}

}  // namespace

Section overview(const RunList& runs, const std::vector<runs::RunTable>& tables) {
  Section section{.id = "runs", .title = "The runs"};
  const auto ran = those(runs, [](const ReportRun& run) { return run.is_ok; });
  const auto out_of_memory = those(runs, [](const ReportRun& run) { return run.is_oom; });
  std::string text =
      fmt::format("{} runs of {} jobs: {} ran, {} ran out of memory, {} did neither.",
                  count_cell(static_cast<int64_t>(runs.size())), jobs_of(runs).size(),
                  count_cell(static_cast<int64_t>(ran.size())), count_cell(static_cast<int64_t>(out_of_memory.size())),
                  count_cell(static_cast<int64_t>(runs.size() - ran.size() - out_of_memory.size())));
  if (ran.empty()) text += " None of them ran, so there are no times to show: only what was predicted, and what fits.";
  section.text.push_back(text);
  section.tables.push_back(files_table(runs, tables));
  if (Table reasons = reasons_table(runs); !reasons.empty()) section.tables.push_back(std::move(reasons));
  return section;
}

}  // namespace layline::report
