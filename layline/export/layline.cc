// Layline's own trainer: RUN.json.

#include <fmt/format.h>

#include "layline/export/script.h"
#include "layline/export/stage_layers.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/spec/registry.h"
#include "layline/trainer/config/run_config.h"

namespace layline::exporting {
namespace {

namespace config = trainer::config;

constexpr Framework kThis = Framework::kLayline;
constexpr const char* kScript = "layline.sh";
constexpr const char* kConfig = "run.json";

spec::Job own_job(const Plan& plan) {
  spec::Job job = plan.job;
  job.engine = spec::get_engine(engine_of(kThis));
  return job;
}

// The layout in the words of Layline's engine, whose legality is the trainer's.
std::string own_text(const Plan& plan) {
  const spec::Job job = own_job(plan);
  layout::Layout layout = plan.layout;
  set_stage_layers(job, plan.stage_layers, layout);
  const std::string text = layout::to_text(layout, layout::text_defaults(job.engine));
  const layout::Legality legality = layout::legality(layout, job);
  if (!legality.legal) refuse(kThis, text, legality.reason);
  return text;
}

config::Precision precision_of(const Plan& plan) {
  if (plan.job.precision == spec::Precision::kBf16) return config::Precision::kBf16;
  if (plan.job.precision != spec::Precision::kFp32) {
    refuse(kThis, name_of(plan.job.precision), "it trains in bf16, fp32 or fp64");
  }
  return config::Precision::kFp32;
}

bool is_cpu(const Plan& plan) { return plan.job.cluster.gpu.name.starts_with("cpu") || plan.job.cluster.measured; }

std::string start(const Plan& plan) {
  if (machines_of(plan.job).num_nodes == 1) {
    return fmt::format("layline train {} --nproc {}", kConfig, plan.job.num_gpus);
  }
  return start_command(plan, kScript);
}

}  // namespace

LaunchFiles write_layline(const Plan& plan) {
  config::RunConfig run;
  run.layout = own_text(plan);
  run.precision = precision_of(plan);
  run.model = plan.model();
  run.cluster = plan.options.cluster.empty() ? plan.job.cluster.name : plan.options.cluster;
  run.sequence_length = plan.job.sequence_length;
  run.global_batch = plan.job.global_batch;
  run.steps = plan.options.steps;
  run.device = is_cpu(plan) ? config::Device::kCpu : config::Device::kCuda;
  run.data.train = {{"corpus.txt", 1}};
  run.metrics = "metrics.jsonl";
  Script script;
  script.framework = kThis;
  script.program = fmt::format("layline-train {}", kConfig);
  script.is_python = false;
  LaunchFiles files;
  files.files.push_back({kConfig, config::to_json(run), false});
  files.files.push_back({kScript, script_text(plan, script), true});
  files.command = start(plan);
  files.notes.emplace_back("data.train is a stand-in: give a text file, or the prefix of a .bin and an .idx file");
  files.notes.emplace_back("steps and learning rate are stand-ins");
  if (!is_cpu(plan)) files.notes.emplace_back("Layline trains on CPUs so far: the run is refused until it has CUDA");
  return files;
}

}  // namespace layline::exporting
