#include "layline/report/runs_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "layline/base/units.h"
#include "layline/calibrate/predict.h"
#include "layline/report/cells.h"

namespace layline::report {
namespace {

using nlohmann::json;

const std::vector<std::string> kFields = {"i",
                                          "sweep",
                                          "model",
                                          "job",
                                          "gpus",
                                          "kernel",
                                          "layout",
                                          "short",
                                          "tp",
                                          "pp",
                                          "dp",
                                          "mb",
                                          "sp",
                                          "ckpt",
                                          "status",
                                          "ran",
                                          "mfu",
                                          "seconds",
                                          "predicted_mfu",
                                          "predicted_seconds",
                                          "error",
                                          "verdict",
                                          "fit_probability",
                                          "margin_gib",
                                          "memory_gib",
                                          "memory_is_measured",
                                          "pareto"};

json whole(const std::optional<int64_t>& value) { return value ? json(*value) : json(nullptr); }

std::optional<double> gib(const std::optional<double>& bytes) {
  if (!bytes) return std::nullopt;
  return *bytes / base::kGib;
}

std::vector<json> row_of(const ReportRun& run, size_t index, bool is_on_front) {
  const runs::RunRecord& r = *run.record;
  const auto& p = run.prediction;
  const auto of_prediction = [&](double calibrate::Prediction::* member) {
    return p ? number_or_null((*p).*member) : json(nullptr);
  };
  const bool has_layout = run.job != nullptr;
  return {index,
          run.sweep,
          run.model,
          run.job_name,
          run.num_gpus > 0 ? json(run.num_gpus) : json(nullptr),
          run.kernel,
          run.layout_text,
          short_layout(run),
          whole(r.tp),
          whole(r.pp),
          has_layout ? json(run.layout.dp) : whole(r.dp),
          whole(r.micro_batch_size),
          (has_layout ? run.layout.sp : r.sp.value_or(false)) ? "on" : "off",
          checkpointing_text(run),
          run.status(),
          run.is_ok,
          number_or_null(run.mfu),
          number_or_null(run.seconds),
          number_or_null(run.predicted_mfu),
          of_prediction(&calibrate::Prediction::step_seconds),
          number_or_null(run.relative_error()),
          p ? json(std::string(calibrate::name_of(p->verdict))) : json(nullptr),
          of_prediction(&calibrate::Prediction::fit_probability),
          p ? number_or_null(p->margin_bytes / base::kGib) : json(nullptr),
          number_or_null(gib(memory_for_pareto(run))),
          run.memory_bytes.has_value(),
          is_on_front};
}

Filter filter_of(const std::string& field, const std::string& label, const std::vector<std::string>& values) {
  return {.field = field, .label = label, .values = values};
}

}  // namespace

std::optional<double> memory_for_pareto(const ReportRun& run) {
  return run.memory_bytes ? run.memory_bytes : predicted_bytes(run);
}

RunList pareto_front(const RunList& job_runs) {
  RunList ran = those(job_runs, [](const ReportRun& run) { return run.seconds && memory_for_pareto(run); });
  std::stable_sort(ran.begin(), ran.end(), [](const ReportRun* a, const ReportRun* b) {
    return std::make_pair(*a->seconds, *memory_for_pareto(*a)) < std::make_pair(*b->seconds, *memory_for_pareto(*b));
  });
  RunList front;
  for (const ReportRun* run : ran) {
    if (front.empty() || *memory_for_pareto(*run) < *memory_for_pareto(*front.back())) front.push_back(run);
  }
  return front;
}

Dataset runs_dataset(const RunList& runs) {
  std::set<const ReportRun*> on_front;
  for (const JobGroup& job : jobs_of(runs)) {
    for (const ReportRun* run : pareto_front(job.runs)) on_front.insert(run);
  }
  Dataset dataset{.fields = kFields};
  dataset.rows.reserve(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) dataset.rows.push_back(row_of(*runs[i], i, on_front.count(runs[i]) != 0));
  return dataset;
}

std::vector<Filter> run_filters(const RunList& runs) {
  std::vector<std::string> models;
  std::set<int64_t> gpus;
  std::set<std::string> kernels;
  for (const JobGroup& job : jobs_of(runs)) {
    const std::string& model = job.runs.front()->model;
    if (std::find(models.begin(), models.end(), model) == models.end()) models.push_back(model);
    for (const ReportRun* run : job.runs) {
      if (run->num_gpus > 0) gpus.insert(run->num_gpus);
      kernels.insert(run->kernel);
    }
  }
  std::vector<std::string> gpu_texts;
  for (const int64_t count : gpus) gpu_texts.push_back(fmt::format("{}", count));
  std::vector<Filter> filters;
  if (models.size() > 1) filters.push_back(filter_of("model", "Model", models));
  if (gpu_texts.size() > 1) filters.push_back(filter_of("gpus", "GPUs", gpu_texts));
  if (kernels.size() > 1) filters.push_back(filter_of("kernel", "Kernel", {kernels.begin(), kernels.end()}));
  return filters;
}

}  // namespace layline::report
