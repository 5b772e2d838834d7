#include "apps/layline/job_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

spec::Precision precision_of(const std::string& text) {
  const auto& names = spec::kPrecisionNames;
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    throw base::InputError("--precision", base::unknown_name_message("precision", text, {names.begin(), names.end()}));
  }
  return static_cast<spec::Precision>(found - names.begin());
}

}  // namespace

void add_job_flags(CLI::App& command, JobFlags& flags, bool required) {
  const auto add = [&](const char* name, auto& member, const char* help) {
    command.add_option(name, member, help)->required(required);
  };
  add("--model", flags.model, "shipped name, spec file, or Hugging Face config.json");
  add("--cluster", flags.cluster, "kind of node and network: shipped name or file");
  add("--gpus", flags.gpus, "GPUs in all: part of a node, or whole nodes");
  add("--global-batch", flags.global_batch, "sequences a step");
  add("--seq-len", flags.sequence_length, "tokens a sequence");
  command.add_option("--engine", flags.engine, "training framework: shipped name or file")->capture_default_str();
  command.add_option("--precision", flags.precision, "bf16, fp16, fp8 or fp32")->capture_default_str();
  command.add_option("--calibration", flags.calibration,
                     "calibration file or name, or none (default: the shipped one)");
}

spec::Job make_job(const JobFlags& flags) {
  spec::Job job;
  job.model = spec::get_model(flags.model);
  job.cluster = spec::get_cluster(flags.cluster);
  job.engine = spec::get_engine(flags.engine);
  job.num_gpus = flags.gpus;
  job.global_batch = flags.global_batch;
  job.sequence_length = flags.sequence_length;
  job.precision = precision_of(flags.precision);
  job.calibration = flags.calibration.empty() ? spec::default_calibration(job.engine, job.cluster)
                                              : spec::get_calibration(flags.calibration);
  spec::check_job(job);
  return job;
}

layout::Layout legal_layout(const spec::Job& job, const std::string& text, const char* flag) {
  const layout::Layout layout = layout::parse_layout(
      text, {.num_gpus = job.num_gpus, .defaults = layout::text_defaults(job.engine), .where = flag});
  const layout::Legality legality = layout::legality(layout, job);
  if (!legality.legal) throw base::InputError(flag, fmt::format("illegal layout: {}", legality.reason));
  return layout;
}

std::string job_title(const spec::Job& job) {
  return fmt::format("{} ({} parameters) · {} × {} · {} sequences of {} tokens a step · {}", job.model.title,
                     base::format_short_count(static_cast<double>(job.model.num_parameters())),
                     base::format_count(job.num_gpus), job.cluster.gpu.title, base::format_count(job.global_batch),
                     base::format_count(job.sequence_length), spec::name_of(job.precision));
}

std::string calibration_title(const spec::Job& job) {
  const spec::Calibration& calibration = job.calibration;
  const std::string bar = base::format_percent(calibration.relative_error_bar, 0);
  if (!calibration.is_fitted() && job.cluster.is_measured_with(job.engine.name)) {
    return fmt::format("from what was measured on it, step time ± {}", bar);
  }
  if (!calibration.is_fitted()) return fmt::format("uncalibrated, step time ± {}", bar);
  return fmt::format("calibrated on {} runs, step time ± {}", base::format_count(calibration.num_timed_runs), bar);
}

std::string job_command_line(const JobFlags& flags) {
  std::string line =
      fmt::format("--model {} --cluster {} --gpus {} --global-batch {} --seq-len {} --engine {}", flags.model,
                  flags.cluster, flags.gpus, flags.global_batch, flags.sequence_length, flags.engine);
  if (flags.precision != "bf16") line += " --precision " + flags.precision;
  if (!flags.calibration.empty()) line += " --calibration " + flags.calibration;
  return line;
}

}  // namespace layline::app
