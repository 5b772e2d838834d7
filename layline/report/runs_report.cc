#include "layline/report/runs_report.h"

#include <fmt/format.h>

#include <set>

#include "layline/base/error.h"
#include "layline/report/builders.h"
#include "layline/report/common_text.h"
#include "layline/report/runs_dataset.h"

namespace layline::report {
namespace {

void check_has_runs(const std::vector<runs::RunTable>& tables) {
  for (const runs::RunTable& table : tables) {
    if (!table.records.empty()) return;
  }
  throw base::InputError(tables.empty() ? "report" : tables.front().file,
                         "has a header but no runs; a report needs at least one");
}

std::string title_of(const RunList& runs) {
  std::set<std::string> models;
  for (const ReportRun* run : runs) models.insert(run->model);
  if (models.size() == 1) return "Training runs of " + *models.begin();
  return fmt::format("Training runs of {} models", models.size());
}

}  // namespace

Report runs_report(const std::vector<runs::RunTable>& tables, const RunsReportOptions& options) {
  check_has_runs(tables);
  const calibrate::Validation validation = calibrate::validate(
      tables, {.engine = options.engine, .cluster = options.cluster, .calibration = options.calibration});
  const std::vector<ReportRun> all = report_runs(validation, options.engine, options.cluster);
  const RunList runs = all_of(all);
  Report report;
  report.title = title_of(runs);
  if (!options.sampling.empty()) report.text.push_back(options.sampling);
  report.text.push_back(calibration_text(runs, options.calibration));
  report.text.push_back(mfu_text());
  if (std::string text = mfu_conventions_text(all); !text.empty()) report.text.push_back(std::move(text));
  report.filters = run_filters(runs);
  report.datasets[kRunsDataset] = runs_dataset(runs);
  report.sections.push_back(overview(runs, tables));
  report.sections.push_back(best_layouts(runs));
  report.sections.push_back(kernels(runs));
  report.sections.push_back(checkpointing(runs));
  report.sections.push_back(micro_batches(runs));
  report.sections.push_back(tensor_against_pipeline(runs));
  report.sections.push_back(sequence_parallelism(runs, report.datasets));
  report.sections.push_back(stage_memory(runs, options.calibration, report.datasets));
  report.sections.push_back(time_against_memory(runs));
  report.sections.push_back(out_of_memory(runs));
  report.sections.push_back(pipeline_timelines(runs, options.calibration, report.datasets));
  report.sections.push_back(accuracy(runs, validation));
  return report;
}

}  // namespace layline::report
