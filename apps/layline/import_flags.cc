#include "apps/layline/import_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

namespace fs = std::filesystem;

// A file that the first one names, beside it; with --script the first one itself is what the script names.
std::function<std::string(const std::string&)> opener(const ImportFlags& flags) {
  if (!flags.script.empty()) {
    return [flags](const std::string&) { return base::read_file(flags.file, exporting::kMaxImportBytes); };
  }
  return [folder = fs::path(flags.file).parent_path()](const std::string& name) -> std::string {
    std::error_code ignored;
    const fs::path path = folder / name;
    if (!fs::is_regular_file(path, ignored)) return "";
    return base::read_file(path.string(), exporting::kMaxImportBytes);
  };
}

}  // namespace

void add_import_flags(CLI::App& command, ImportFlags& flags, const char* file_option) {
  CLI::Option* file = command.add_option(file_option, flags.file, "script or configuration of another framework");
  CLI::Option* from = command.add_option(
      "--from", flags.from, "megatron, nemo, torchtitan, nanotron, deepspeed or layline (default: by its look)");
  CLI::Option* script = command.add_option("--script", flags.script, "the script that starts a DeepSpeed JSON");
  if (std::string_view(file_option).starts_with("--")) {
    from->needs(file);
    script->needs(file);
  } else {
    file->required();
  }
}

exporting::Imported read_import(const ImportFlags& flags, const JobFlags& job) {
  const std::string& path = flags.script.empty() ? flags.file : flags.script;
  const std::string text = base::read_file(path, exporting::kMaxImportBytes);
  exporting::ImportOptions options;
  options.where = path;
  options.num_gpus = job.gpus;
  options.global_batch = job.global_batch;
  options.sequence_length = job.sequence_length;
  options.model = job.model;
  options.open = opener(flags);
  const exporting::Framework framework =
      flags.from.empty() ? exporting::guess_framework(text, path) : exporting::framework_named(flags.from, "--from");
  return exporting::import_layout(text, framework, options);
}

spec::Job make_job(const JobFlags& flags, const exporting::Imported& imported, bool has_engine) {
  spec::Job job;
  job.model = imported.model;
  job.cluster = spec::get_cluster(flags.cluster);
  job.engine = spec::get_engine(has_engine ? flags.engine : exporting::engine_of(imported.framework));
  job.num_gpus = imported.num_gpus;
  job.global_batch = imported.global_batch;
  job.sequence_length = imported.sequence_length;
  job.precision = imported.precision;
  job.calibration = flags.calibration.empty() ? spec::default_calibration(job.engine, job.cluster)
                                              : spec::get_calibration(flags.calibration);
  spec::check_job(job);
  return job;
}

std::string explain_command(const ImportFlags& flags, const JobFlags& job, const exporting::Imported& imported) {
  const std::string cluster = job.cluster.empty() ? "CLUSTER" : job.cluster;
  const spec::Engine engine = spec::get_engine(exporting::engine_of(imported.framework));
  if (imported.is_known_model) {
    JobFlags named = job;
    named.model = job.model.empty() ? imported.model.name : job.model;
    named.cluster = cluster;
    named.engine = engine.name;
    named.gpus = imported.num_gpus;
    named.global_batch = imported.global_batch;
    named.sequence_length = imported.sequence_length;
    named.precision = spec::name_of(imported.precision);
    return fmt::format("layline explain {} --layout \"{}\"", job_command_line(named),
                       layout::to_text(imported.layout, layout::text_defaults(engine)));
  }
  std::string line = fmt::format("layline explain --import {} --from {} --cluster {}", flags.file,
                                 exporting::name_of(imported.framework), cluster);
  if (!flags.script.empty()) line += " --script " + flags.script;
  if (job.gpus > 0) line += fmt::format(" --gpus {}", job.gpus);
  if (job.global_batch > 0) line += fmt::format(" --global-batch {}", job.global_batch);
  if (job.sequence_length > 0) line += fmt::format(" --seq-len {}", job.sequence_length);
  return line;
}

}  // namespace layline::app
