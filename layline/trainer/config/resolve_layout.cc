#include "layline/trainer/config/resolve_layout.h"

#include <fmt/format.h>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/search/explain.h"
#include "layline/search/search.h"
#include "layline/spec/registry.h"

namespace layline::trainer::config {
namespace {

constexpr int64_t kMaxRanks = 1'000'000;

spec::Cluster cluster_of(const RunConfig& config, int64_t world_size) {
  if (config.cluster.empty()) {
    if (config.device != Device::kCpu) {
      throw base::InputError(place_of(config, "cluster"), "is missing: device cuda wants the kind of GPU and network");
    }
    spec::Cluster machine = spec::get_cluster("cpu");
    machine.gpus_per_node = static_cast<int>(world_size);
    return machine;
  }
  try {
    return spec::get_cluster(config.cluster);
  } catch (const base::InputError& error) {
    throw base::InputError(place_of(config, "cluster"), error.what());
  }
}

// The planner's messages name its flags; here they are keys of the run.
void check_job(const RunConfig& config, const spec::Job& job) {
  try {
    spec::check_job(job);
  } catch (const base::InputError& error) {
    std::string message = error.what();
    for (const auto& [flag, key] : {std::pair{"--gpus: ", "cluster"}, {"--precision: ", "precision"}}) {
      if (message.starts_with(flag)) {
        throw base::InputError(place_of(config, key), message.substr(std::string_view(flag).size()));
      }
    }
    throw base::InputError(config.where, message);
  }
}

layout::Layout written_layout(const RunConfig& config, const spec::Job& job) {
  const std::string where = place_of(config, "layout");
  layout::Layout layout = layout::parse_layout(
      config.layout, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine), .where = where});
  const layout::Legality legality = layout::legality(layout, job);
  if (legality.legal) return layout;
  std::string reason = legality.reason;
  if (legality.rule == layout::Rule::kWorldSize) {
    reason = fmt::format("it is for {} ranks, and {} are started; start {}, or leave dp out", layout.world_size(),
                         job.num_gpus, layout.world_size());
  }
  throw base::InputError(where, fmt::format("illegal layout \"{}\": {}", config.layout, reason));
}

[[noreturn]] void throw_nothing_fits(const RunConfig& config, const spec::Job& job, const search::Plan& plan) {
  const std::string where = place_of(config, "layout");
  if (plan.nearest_misses.empty()) {
    throw base::InputError(where,
                           fmt::format("no layout is legal on {} ranks: {}", job.num_gpus, plan.why_none_is_legal));
  }
  const search::PricedLayout& miss = plan.nearest_misses.front();
  throw base::InputError(where, fmt::format("no layout fits in {} on {} ranks; the nearest, {}, needs {}",
                                            base::format_bytes(miss.price.capacity_bytes), job.num_gpus,
                                            layout::to_text(miss.layout, layout::text_defaults(job.engine)),
                                            base::format_bytes(miss.price.peak_memory_bytes)));
}

}  // namespace

spec::Job job_of(const RunConfig& config, int64_t world_size) {
  if (world_size < 1 || world_size > kMaxRanks) {
    throw base::InputError("ranks", fmt::format("found {}, want 1 to {}", world_size, kMaxRanks));
  }
  spec::Job job;
  job.model = config.model;
  job.cluster = cluster_of(config, world_size);
  job.engine = spec::get_engine("layline");
  job.calibration = spec::default_calibration(job.engine, job.cluster);
  job.num_gpus = world_size;
  job.global_batch = config.global_batch;
  job.sequence_length = config.sequence_length;
  job.precision = config.precision == Precision::kBf16 ? spec::Precision::kBf16 : spec::Precision::kFp32;
  if (config.memory_limit_bytes) job.cluster.gpu.memory_bytes = static_cast<double>(*config.memory_limit_bytes);
  check_job(config, job);
  return job;
}

ResolvedLayout resolve_layout(const RunConfig& config, int64_t world_size) {
  ResolvedLayout resolved;
  resolved.job = job_of(config, world_size);
  const spec::Job& job = resolved.job;
  if (config.layout == "auto") {
    const search::Plan plan = search::find_plan(job, {.fix = {}, .top = 1});
    if (plan.best.empty()) throw_nothing_fits(config, job, plan);
    resolved.layout = plan.best.front().layout;
    resolved.how = fmt::format("the planner's first of {} that fit", base::format_count(plan.num_fit));
  } else {
    resolved.layout = written_layout(config, job);
    resolved.how = "as written";
  }
  resolved.text = layout::to_text(resolved.layout, layout::text_defaults(job.engine));
  const double peak = job.cluster.gpu.peak_flops_per_second(job.precision);
  if (!config.cluster.empty() && config.precision != Precision::kFp64) resolved.peak_flops_per_second = peak;
  return resolved;
}

Prediction predict(const spec::Job& job, const layout::Layout& layout) {
  const search::Explanation explanation = search::explain(job, layout);
  const cost::StepPrice& price = explanation.priced.price;
  Prediction prediction;
  prediction.step_seconds = price.step_seconds;
  prediction.relative_error_bar = job.calibration.relative_error_bar;
  prediction.is_calibrated = job.calibration.is_fitted();
  for (const cost::StagePrice& stage : explanation.stages) {
    prediction.memory_bytes_by_stage.push_back(stage.memory.total());
  }
  prediction.capacity_bytes = price.capacity_bytes;
  prediction.fit_probability = price.fit_probability;
  return prediction;
}

std::optional<double> model_flops_utilization(const ResolvedLayout& resolved, double step_seconds) {
  if (!resolved.peak_flops_per_second || step_seconds <= 0) return std::nullopt;
  return cost::model_flops_utilization(resolved.job, step_seconds);
}

}  // namespace layline::trainer::config
