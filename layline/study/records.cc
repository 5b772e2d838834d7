#include "layline/study/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "layline/calibrate/predict.h"
#include "layline/calibrate/run_job.h"
#include "layline/layout/layout_text.h"
#include "layline/runs/csv.h"
#include "layline/runs/run_record.h"

namespace layline::study {
namespace {

// What a layout is to its job.
std::string roles_of(const Advice& advice, const layout::Layout& layout) {
  std::vector<std::string> roles;
  if (advice.best && advice.best->layout == layout) roles.emplace_back("best");
  for (const Outcome& outcome : advice.outcomes) {
    if (outcome.follows && outcome.follows->layout == layout)
      roles.push_back(fmt::format("{} follows", outcome.rule->id));
    if (outcome.rule->is_comparison() && outcome.other && outcome.other->layout == layout) {
      roles.push_back(fmt::format("{} breaks", outcome.rule->id));
    }
  }
  return roles.empty() ? "asked for" : fmt::format("{}", fmt::join(roles, ", "));
}

std::string job_name(const spec::Job& job) {
  return fmt::format("{}, {} {}, {} sequences of {}, {}", job.model.name, job.num_gpus, job.cluster.name,
                     job.global_batch, job.sequence_length, job.engine.name);
}

std::string row_of(const Study& study, const StudyJob& study_job, const layout::Layout& layout, cost::Pricer& pricer) {
  const spec::Job& job = *study_job.advice.job;
  runs::RunRecord record = calibrate::record_of(job, layout);
  // As records name machines, so that the row can be read back without the cluster's spec.
  record.hardware = job.cluster.gpu.name;
  const auto& networks = job.cluster.interconnect_aliases;
  record.interconnect = networks.empty() ? job.cluster.name : networks.front();
  record.source = "layline study (predicted)";
  record.scored = false;
  record.notes = fmt::format("predicted; sweep={}: {}; layout={}; role={}; calibration={}", study.spec.name,
                             job_name(job), layout::to_text(layout, layout::text_defaults(job.engine)),
                             roles_of(study_job.advice, layout), job.calibration.name);
  std::vector<std::string> fields = runs::to_fields(record);
  const calibrate::Prediction prediction =
      calibrate::predict(pricer, layout, calibrate::MemoryKind::kAllocated, job.calibration.relative_error_bar);
  const std::vector<std::string> predictions = calibrate::prediction_fields(prediction);
  fields.insert(fields.end(), predictions.begin(), predictions.end());
  return runs::format_csv_row(fields);
}

}  // namespace

std::string records_csv(const Study& study) {
  std::vector<std::string> header = runs::run_columns();
  header.insert(header.end(), runs::prediction_columns().begin(), runs::prediction_columns().end());
  std::string csv = runs::format_csv_row(header);
  for (const StudyJob& job : study.jobs) {
    cost::Pricer pricer(*job.advice.job);
    for (const search::PricedLayout& priced : job.layouts) csv += row_of(study, job, priced.layout, pricer);
  }
  return csv;
}

}  // namespace layline::study
