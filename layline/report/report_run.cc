#include "layline/report/report_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "layline/base/units.h"
#include "layline/calibrate/run_job.h"
#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::report {
namespace {

std::string kernel_text(const layout::Layout& layout, const spec::Model& model) {
  static constexpr std::array<std::string_view, 4> kAttention = {"FlashAttention 2", "FlashAttention 1",
                                                                 "fused softmax", "unfused attention"};
  std::string text(kAttention[static_cast<size_t>(layout.attention)]);
  const bool has_rms_norm = model.norm == spec::Norm::kRmsNorm;
  if (layout.norm == layout::NormKernel::kFused && has_rms_norm) text += " + fused norm";
  return text;
}

// Narayanan et al. 2021, equation 3: FLOPs of a step with full recomputation, as their TFLOP/s count them.
double sc21_flops(const runs::RunRecord& r) {
  const double batch = static_cast<double>(*r.global_batch_sequences), s = static_cast<double>(*r.seq_len);
  const double l = static_cast<double>(*r.layers), h = static_cast<double>(*r.hidden);
  const double vocab = static_cast<double>(*r.vocab);
  return 96 * batch * s * l * h * h * (1 + s / (6 * h) + vocab / (16 * l * h));
}

// Of runs whose source gives FLOP/s and the formula that counted them, but no time.
std::optional<double> derived_seconds(const runs::RunRecord& r) {
  const bool says_formula = r.notes.find("formula F=96*B*s*l*h^2*(1+s/(6h)+V/(16lh))") != std::string::npos;
  const auto gpus = runs::num_gpus(r);
  if (!says_formula || !gpus || !r.global_batch_sequences || !r.seq_len || !r.layers || !r.hidden || !r.vocab) {
    return std::nullopt;
  }
  if (!r.tflops_per_gpu || *r.tflops_per_gpu <= 0) return std::nullopt;
  return sc21_flops(r) / (*r.tflops_per_gpu * 1e12 * static_cast<double>(*gpus));
}

void set_measured(ReportRun& run) {
  const runs::RunRecord& r = *run.record;
  run.is_ok = r.status == runs::RunStatus::kOk;
  run.is_oom = r.status == runs::RunStatus::kOom;
  if (!run.is_ok) return;
  run.seconds = runs::step_seconds(r);
  if (!run.seconds) {
    run.seconds = derived_seconds(r);
    run.seconds_are_derived = run.seconds.has_value();
  }
  if (run.job && run.seconds) run.mfu = cost::model_flops_utilization(*run.job, *run.seconds);
  if (r.peak_memory_GiB) run.memory_bytes = *r.peak_memory_GiB * base::kGib;
}

void set_predicted(ReportRun& run, const calibrate::ValidatedRun& validated) {
  const calibrate::Prediction& prediction = validated.prediction;
  if (prediction.step_seconds > 0) {
    run.prediction = prediction;
    if (run.job) run.predicted_mfu = cost::model_flops_utilization(*run.job, prediction.step_seconds);
    return;
  }
  run.why_not_predicted = prediction.reason.empty() ? validated.reason : prediction.reason;
  if (run.why_not_predicted.empty()) run.why_not_predicted = "no prediction";
}

// Jobs are shared by the runs whose records say the same of everything but the layout.
class Jobs {
 public:
  std::shared_ptr<const spec::Job> shared(spec::Job job) {
    const std::string key = fmt::format("{}|{}|{}|{}|{}", spec::measured_job_key(job), job.engine.name,
                                        job.cluster.name, job.cluster.gpu.memory_bytes, job.model.name) +
                            fmt::format("|{}|{}", job.cluster.gpus_per_node, job.model.tied_embeddings);
    auto& found = jobs_[key];
    if (!found) found = std::make_shared<const spec::Job>(std::move(job));
    return found;
  }

 private:
  std::map<std::string, std::shared_ptr<const spec::Job>> jobs_;
};

std::string layout_of_columns(const runs::RunRecord& r) {
  std::string text;
  const auto add = [&](const char* axis, const std::optional<int64_t>& value) {
    if (value) text += fmt::format("{}{}{}", text.empty() ? "" : " ", axis, *value);
  };
  add("dp", r.dp);
  add("tp", r.tp);
  add("pp", r.pp);
  add("mb", r.micro_batch_size);
  return text.empty() ? "not stated" : text;
}

void set_names(ReportRun& run) {
  const runs::RunRecord& r = *run.record;
  run.model = r.model.empty() ? "unnamed model" : r.model;
  run.num_gpus = runs::num_gpus(r).value_or(0);
  run.job_name = run.model;
  if (r.seq_len) run.job_name += ", " + length_text(*r.seq_len);
  if (run.num_gpus > 0)
    run.job_name += fmt::format(", {} GPU{}", base::format_count(run.num_gpus), run.num_gpus == 1 ? "" : "s");
  if (!run.job) {
    run.kernel = r.attention_kernel.empty() ? "kernel not stated" : r.attention_kernel;
    run.layout_text = layout_of_columns(r);
  }
}

// The further things that tell apart jobs of one name: what is run on, by which engine, with which batch.
void tell_apart(std::vector<ReportRun>& runs) {
  std::map<std::string, std::set<std::string>> hardware, engines, batches;
  for (const ReportRun& run : runs) {
    hardware[run.job_name].insert(run.record->hardware);
    engines[run.job_name].insert(run.record->engine);
    batches[run.job_name].insert(fmt::format("{}", run.record->global_batch_sequences.value_or(0)));
  }
  for (ReportRun& run : runs) {
    const std::string name = run.job_name;
    if (hardware[name].size() > 1) run.job_name += ", " + run.record->hardware;
    if (engines[name].size() > 1) run.job_name += ", " + run.record->engine;
    if (batches[name].size() > 1 && run.record->global_batch_sequences) {
      run.job_name += fmt::format(", batch {}", base::format_count(*run.record->global_batch_sequences));
    }
  }
}

ReportRun report_run(const calibrate::ValidatedRun& validated, const std::string& engine, const spec::Cluster* cluster,
                     Jobs& jobs) {
  ReportRun run;
  run.record = validated.record;
  run.sweep = validated.sweep;
  calibrate::RunJobOrReason read = calibrate::job_of(*run.record, engine, cluster);
  if (read.run) {
    run.layout = read.run->layout;
    run.kernel = kernel_text(run.layout, read.run->job.model);
    run.layout_text = layout::to_text(run.layout, layout::text_defaults(read.run->job.engine));
    run.job = jobs.shared(std::move(read.run->job));
  }
  set_names(run);
  set_measured(run);
  set_predicted(run, validated);
  return run;
}

}  // namespace

std::optional<double> ReportRun::relative_error() const {
  if (!prediction || !seconds || *seconds <= 0) return std::nullopt;
  return prediction->step_seconds / *seconds - 1;
}

std::string ReportRun::status() const {
  return record->status ? std::string(runs::name_of(*record->status)) : "not stated";
}

std::vector<ReportRun> report_runs(const calibrate::Validation& validation, const std::string& engine,
                                   const std::string& cluster) {
  std::optional<spec::Cluster> own;
  if (!cluster.empty()) own = spec::get_cluster(cluster);
  std::vector<ReportRun> runs;
  runs.reserve(validation.runs.size());
  Jobs jobs;
  for (const calibrate::ValidatedRun& validated : validation.runs) {
    runs.push_back(report_run(validated, engine, own ? &*own : nullptr, jobs));
  }
  tell_apart(runs);
  return runs;
}

std::string mfu_conventions_text(const std::vector<ReportRun>& runs) {
  int64_t published = 0, differ = 0, only_published = 0;
  double most = 0;
  for (const ReportRun& run : runs) {
    if (!run.record->mfu) continue;
    ++published;
    if (!run.mfu) {
      ++only_published;
      continue;
    }
    const double difference = std::abs(*run.mfu - *run.record->mfu);
    most = std::max(most, difference);
    if (difference > 0.01) ++differ;
  }
  if (published == 0) return "";
  std::string text = fmt::format("{} of the runs come with an MFU of their own. ", base::format_count(published));
  text += differ == 0 ? "The one computed here is within a point of each. "
                      : fmt::format(
                            "In {} the one computed here differs by more than a point (by {:.1f} at most), since "
                            "sources count FLOPs in different ways and some do not fit their own times. ",
                            base::format_count(differ), 100 * most);
  if (only_published > 0) {
    text += fmt::format("{} have no step time that it could be computed from, and are left out of the charts. ",
                        base::format_count(only_published));
  }
  text.pop_back();
  return text;
}

std::string length_text(int64_t tokens) {
  if (tokens >= 1024 && tokens % 1024 == 0) return fmt::format("{}k", base::format_count(tokens / 1024));
  return base::format_count(tokens);
}

}  // namespace layline::report
