#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/layline/checkpoint_convert.h"
#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/checkpoint/verify.h"

namespace layline::app {
namespace {

namespace checkpoint = trainer::checkpoint;
using checkpoint::CheckpointReader;
using checkpoint::Manifest;
using nlohmann::ordered_json;

struct CheckpointFlags {
  std::string path;
  bool json = false;
};

int64_t num_parameters(const Manifest& manifest) {
  int64_t sum = 0;
  for (const checkpoint::SavedParameter& parameter : manifest.parameters)
    sum += checkpoint::whole(parameter.shape).size();
  return sum;
}

// Of RUN.json; "" where a run does not say.
std::string text_at(const ordered_json& run, const char* place) {
  const ordered_json::json_pointer pointer(place);
  return run.contains(pointer) && run.at(pointer).is_string() ? run.at(pointer).get<std::string>() : "";
}

ordered_json json_of(const std::string& folder, const Manifest& manifest) {
  ordered_json json = {{"path", folder},
                       {"step", manifest.step},
                       {"tokens", manifest.tokens},
                       {"next_sample", manifest.next_sample},
                       {"layout", manifest.layout},
                       {"dtype", trainer::formats::name_of(manifest.type)},
                       {"has_moments", manifest.has_moments},
                       {"num_parameters", num_parameters(manifest)},
                       {"num_files", manifest.files.size()},
                       {"size_bytes", manifest.size_bytes()}};
  json["run"] = ordered_json::parse(manifest.run);
  return json;
}

std::string text_of(const std::string& folder, const Manifest& manifest) {
  const ordered_json run = ordered_json::parse(manifest.run);
  const auto row = [](const char* name, const std::string& text) { return fmt::format("  {:<10} {}\n", name, text); };
  std::string text = folder + "\n";
  text += row("model", fmt::format("{}, {} parameters, {} weights", text_at(run, "/model/title"),
                                   base::format_short_count(static_cast<double>(num_parameters(manifest))),
                                   manifest.parameters.size()));
  text += row("step", fmt::format("{}, {} tokens, next sample {}", base::format_count(manifest.step),
                                  base::format_count(manifest.tokens), base::format_count(manifest.next_sample)));
  const std::string from = text_at(run, "/import/from");
  if (from.empty()) text += row("layout", manifest.layout);
  text += row("holds", fmt::format("weights{} in {}, {}", manifest.has_moments ? " and moments" : "",
                                   manifest.type == trainer::formats::TensorType::kF64 ? "fp64" : "fp32",
                                   from.empty() ? "of a run in " + text_at(run, "/precision") : "from " + from));
  text += row("files", fmt::format("{}, {}", manifest.files.size(),
                                   base::format_bytes(static_cast<double>(manifest.size_bytes()))));
  return text;
}

void run_info(const CheckpointFlags& flags) {
  const std::string folder = checkpoint::find_checkpoint(flags.path);
  const CheckpointReader reader(folder);
  std::vector<int64_t> others;
  if (folder != flags.path) others = checkpoint::committed_steps(flags.path);
  if (flags.json) {
    ordered_json json = {{"schema_version", 1}};
    json.update(json_of(folder, reader.manifest()));
    json["steps"] = folder == flags.path ? std::vector<int64_t>{reader.manifest().step} : others;
    return print(json.dump(2) + "\n");
  }
  std::string text = text_of(folder, reader.manifest());
  for (size_t i = 1; i < others.size(); ++i) {
    text += fmt::format("{}{}", i == 1 ? "  also there  step " : ", ", base::format_count(others[i]));
  }
  print(others.size() > 1 ? text + "\n" : text);
}

void run_verify(const CheckpointFlags& flags) {
  const auto start = std::chrono::steady_clock::now();
  const CheckpointReader reader(checkpoint::find_checkpoint(flags.path));
  const std::unique_ptr<base::ProgressSink> sink = progress_sink();
  const std::vector<std::string> mistakes = checkpoint::verify(reader, sink.get());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto bytes = static_cast<double>(reader.bytes_read());
  if (flags.json) {
    const ordered_json json = {
        {"schema_version", 1},         {"path", reader.folder()}, {"step", reader.manifest().step},
        {"is_good", mistakes.empty()}, {"mistakes", mistakes},    {"bytes_read", reader.bytes_read()},
        {"seconds", seconds}};
    print(json.dump(2) + "\n");
  } else if (mistakes.empty()) {
    print(fmt::format("{}: good: {} {}, {} in {} ({} a second)\n", reader.folder(), reader.manifest().files.size(),
                      reader.manifest().files.size() == 1 ? "file" : "files", base::format_bytes(bytes),
                      base::format_seconds(seconds), base::format_bytes(bytes / seconds)));
  }
  for (const std::string& mistake : mistakes) fmt::print(stderr, "error: {}\n", mistake);
  if (!mistakes.empty()) throw Exit{kBadInput};
}

CLI::App* add_command(CLI::App& parent, const char* name, const char* help,
                      const std::shared_ptr<CheckpointFlags>& flags) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_option("path", flags->path, "a checkpoint's folder, or one with checkpoints: then its newest")
      ->required();
  command->add_flag("--json", flags->json, "print JSON");
  return command;
}

}  // namespace

void add_checkpoint(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "checkpoint", "Look at checkpoints of training runs, verify them, and bring them to other formats");
  command->require_subcommand(1);
  auto flags = std::make_shared<CheckpointFlags>();
  add_command(*command, "info", "Step, model, layout and size", flags)->callback([flags] { run_info(*flags); });
  add_command(*command, "verify", "Read every byte against its hash", flags)->callback([flags] { run_verify(*flags); });
  add_checkpoint_conversions(*command);
  command->footer("Example: layline checkpoint verify saved");
}

}  // namespace layline::app
