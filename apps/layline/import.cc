#include "layline/export/import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/layline/command.h"
#include "apps/layline/import_flags.h"
#include "apps/layline/layout_json.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/spec/registry.h"

namespace layline::app {
namespace {

using exporting::Imported;

struct Flags {
  ImportFlags import;
  JobFlags job;
  bool json = false;
};

// What legality asks of a job; no cluster.
spec::Job job_of(const Imported& imported) {
  spec::Job job;
  job.model = imported.model;
  job.engine = spec::get_engine(exporting::engine_of(imported.framework));
  job.num_gpus = imported.num_gpus;
  job.global_batch = imported.global_batch;
  job.sequence_length = imported.sequence_length;
  job.precision = imported.precision;
  return job;
}

std::string layout_text(const spec::Job& job, const Imported& imported) {
  return layout::to_text(imported.layout, layout::text_defaults(job.engine));
}

nlohmann::ordered_json json_of_import(const Imported& imported, const Flags& flags) {
  const spec::Job job = job_of(imported);
  const layout::Legality legality = layout::legality(imported.layout, job);
  nlohmann::ordered_json json;
  json["schema_version"] = 1;
  json["framework"] = exporting::name_of(imported.framework);
  json["layout"] = layout_text(job, imported);
  json["job"] = {{"model", imported.model.name},
                 {"num_parameters", imported.model.num_parameters()},
                 {"num_gpus", imported.num_gpus},
                 {"global_batch", imported.global_batch},
                 {"sequence_length", imported.sequence_length},
                 {"precision", spec::name_of(imported.precision)}};
  json["model"] = nlohmann::ordered_json::parse(spec::to_json(imported.model));
  json["engine"] = job.engine.name;
  json["legal"] = legality.legal;
  if (!legality.legal) json["reason"] = legality.reason;
  json["ignored"] = imported.ignored;
  json["notes"] = imported.notes;
  json["explain_command"] = explain_command(flags.import, flags.job, imported);
  return json;
}

std::string import_text(const Imported& imported, const Flags& flags) {
  const spec::Job job = job_of(imported);
  const layout::Legality legality = layout::legality(imported.layout, job);
  std::string text = fmt::format(
      "{} · {} ({} parameters) · {} GPUs · {} sequences of {} tokens a step · {}\nlayout  {}\n",
      exporting::title_of(imported.framework), imported.model.title,
      base::format_short_count(static_cast<double>(imported.model.num_parameters())),
      base::format_count(imported.num_gpus), base::format_count(imported.global_batch),
      base::format_count(imported.sequence_length), spec::name_of(imported.precision), layout_text(job, imported));
  if (!legality.legal) text += fmt::format("not legal here: {}\n", legality.reason);
  for (const std::string& note : imported.notes) text += fmt::format("note: {}\n", note);
  if (!imported.ignored.empty()) text += "\nignored, no part of a layout:\n";
  for (const std::string& setting : imported.ignored) text += fmt::format("  {}\n", setting);
  if (!legality.legal) return text;
  return text + fmt::format("\nNext:  {}\n", explain_command(flags.import, flags.job, imported));
}

void run_import(const Flags& flags) {
  if (!flags.job.cluster.empty()) spec::get_cluster(flags.job.cluster);
  const Imported imported = read_import(flags.import, flags.job);
  print(flags.json ? json_text(json_of_import(imported, flags)) : import_text(imported, flags));
}

}  // namespace

void add_import(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("import", "Read a layout out of another framework's script or configuration");
  add_import_flags(*command, flags->import, "file");
  command->add_option("--model", flags->job.model, "instead of the sizes in the file");
  command->add_option("--gpus", flags->job.gpus, "where the file does not say how many")
      ->check(CLI::Range(int64_t{1}, layout::kMaxAxis));
  command->add_option("--global-batch", flags->job.global_batch, "sequences a step, where the file does not say")
      ->check(CLI::PositiveNumber);
  command->add_option("--seq-len", flags->job.sequence_length, "tokens a sequence, where the file does not say")
      ->check(CLI::PositiveNumber);
  command->add_option("--cluster", flags->job.cluster, "for the command that is suggested next");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: layline import pretrain_llama.sh --from megatron --gpus 64");
  command->callback([flags] { run_import(*flags); });
}

}  // namespace layline::app
