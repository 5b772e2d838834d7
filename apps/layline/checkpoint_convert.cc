#include "apps/layline/checkpoint_convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/layline/command.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/trainer/checkpoint/folder.h"
#include "layline/trainer/convert/export_model.h"
#include "layline/trainer/convert/import_model.h"

namespace layline::app {
namespace {

namespace checkpoint = trainer::checkpoint;
namespace convert = trainer::convert;
using nlohmann::ordered_json;
using trainer::formats::TensorType;

const std::map<std::string, TensorType> kTypes = {
    {"bf16", TensorType::kBf16}, {"fp16", TensorType::kF16}, {"fp32", TensorType::kF32}, {"fp64", TensorType::kF64}};

struct ConvertFlags {
  std::string from, to, type;
  uint64_t file_bytes = 0;
  bool drops_moments = false, json = false;
};

// Calls work(is_cancelled); a first Ctrl-C or SIGTERM ends it, and leaves nothing.
void run_until_signal(const std::function<void(const std::function<bool()>&)>& work) {
  const SignalQueue signals;  // before there are threads
  std::atomic<int> signal{0};
  const auto is_cancelled = [&] {
    if (const int next = signals.next(); next == SIGINT || next == SIGTERM) signal = next;
    return signal != 0;
  };
  try {
    work(is_cancelled);
  } catch (const base::RunError&) {
    if (signal == 0) throw;
    fmt::print(stderr, "interrupted: nothing was written\n");
    throw Exit{kSignalled + signal};
  }
}

void print_written(const ConvertFlags& flags, const ordered_json& what, const std::string& text) {
  ordered_json json = {{"schema_version", 1}, {"from", flags.from}};
  json.update(what);
  print(flags.json ? json.dump(2) + "\n" : text);
}

void run_export(const ConvertFlags& flags) {
  const checkpoint::CheckpointReader reader(checkpoint::find_checkpoint(flags.from));
  const std::unique_ptr<base::ProgressSink> sink = progress_sink();
  run_until_signal([&](const std::function<bool()>& is_cancelled) {
    convert::ExportOptions options;
    options.type = kTypes.at(flags.type);
    options.file_bytes = static_cast<int64_t>(flags.file_bytes);
    options.sink = sink.get();
    options.is_cancelled = is_cancelled;
    const convert::Exported exported = convert::export_model(reader, flags.to, options);
    print_written(
        flags,
        {{"path", flags.to},
         {"step", reader.manifest().step},
         {"dtype", trainer::formats::name_of(options.type)},
         {"num_files", exported.num_files},
         {"size_bytes", exported.size_bytes}},
        fmt::format("{}: config.json and {} of weights in {}, {}, of {}\nNext:  transformers."
                    "AutoModelForCausalLM.from_pretrained(\"{}\")\n",
                    flags.to, exported.num_files == 1 ? "a file" : fmt::format("{} files", exported.num_files),
                    flags.type, base::format_bytes(static_cast<double>(exported.size_bytes)), reader.folder(),
                    flags.to));
  });
}

convert::WriteOptions write_options(const ConvertFlags& flags, base::ProgressSink* sink,
                                    const std::function<bool()>& is_cancelled) {
  convert::WriteOptions options;
  options.file_bytes = static_cast<int64_t>(flags.file_bytes);
  options.sink = sink;
  options.is_cancelled = is_cancelled;
  return options;
}

void print_checkpoint(const ConvertFlags& flags, const std::string& folder) {
  const checkpoint::CheckpointReader reader(folder);
  const checkpoint::Manifest& manifest = reader.manifest();
  print_written(
      flags,
      {{"path", folder},
       {"step", manifest.step},
       {"dtype", trainer::formats::name_of(manifest.type)},
       {"has_moments", manifest.has_moments},
       {"num_files", manifest.files.size()},
       {"size_bytes", manifest.size_bytes()}},
      fmt::format("{}: step {}, {}, {}\nNext:  \"checkpoint\": {{\"directory\": \"{}\", \"resume\": true}} in "
                  "RUN.json\n",
                  folder, manifest.step, flags.type, base::format_bytes(static_cast<double>(manifest.size_bytes())),
                  flags.to));
}

void run_import(const ConvertFlags& flags) {
  const std::unique_ptr<base::ProgressSink> sink = progress_sink();
  run_until_signal([&](const std::function<bool()>& is_cancelled) {
    print_checkpoint(flags, convert::import_model(flags.from, flags.to, kTypes.at(flags.type),
                                                  write_options(flags, sink.get(), is_cancelled)));
  });
}

void run_convert(const ConvertFlags& flags) {
  const checkpoint::CheckpointReader reader(checkpoint::find_checkpoint(flags.from));
  const std::unique_ptr<base::ProgressSink> sink = progress_sink();
  run_until_signal([&](const std::function<bool()>& is_cancelled) {
    const convert::ConvertOptions options{kTypes.at(flags.type), !flags.drops_moments};
    print_checkpoint(
        flags, convert::convert_checkpoint(reader, flags.to, options, write_options(flags, sink.get(), is_cancelled)));
  });
}

struct Command {
  const char *name, *help, *from, *to, *types_help;
  std::vector<std::string> types;  // the first is the default
  const char* file_bytes;
  const char* example;
};

CLI::App* add_command(CLI::App& parent, const Command& of, const std::shared_ptr<ConvertFlags>& flags) {
  CLI::App* command = parent.add_subcommand(of.name, of.help);
  command->add_option("from", flags->from, of.from)->required();
  command->add_option("to", flags->to, of.to)->required();
  command->add_option("--dtype", flags->type, of.types_help)
      ->check(CLI::IsMember(of.types))
      ->default_str(of.types.front());
  command->add_option("--shard-size", flags->file_bytes, "bytes of a file, about")
      ->transform(CLI::AsSizeValue(true))
      ->default_str(of.file_bytes)
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(std::string("Example: ") + of.example);
  return command;
}

// CLI11 shows a default that it did not set.
std::shared_ptr<ConvertFlags> flags_with(const char* type, uint64_t file_bytes) {
  auto flags = std::make_shared<ConvertFlags>();
  flags->type = type;
  flags->file_bytes = file_bytes;
  return flags;
}

}  // namespace

void add_checkpoint_conversions(CLI::App& checkpoint) {
  auto exporting = flags_with("bf16", 5'000'000'000);
  add_command(checkpoint,
              {"export",
               "Weights for Hugging Face's transformers: safetensors and config.json",
               "a checkpoint's folder, or one with checkpoints: then its newest",
               "the folder to make",
               "of the weights",
               {"bf16", "fp16", "fp32", "fp64"},
               "5GB",
               "layline checkpoint export saved llama-mine --dtype bf16"},
              exporting)
      ->callback([exporting] { run_export(*exporting); });
  auto importing = flags_with("fp32", 1'000'000'000);
  add_command(checkpoint,
              {"import",
               "A Hugging Face Llama as a checkpoint to go on from",
               "a folder with config.json and safetensors",
               "the folder for the checkpoint: it has none yet",
               "fp32 for runs in bf16 and fp32, fp64 for those in fp64",
               {"fp32", "fp64"},
               "1GB",
               "layline checkpoint import llama-2-7b saved"},
              importing)
      ->callback([importing] { run_import(*importing); });
  auto converting = flags_with("fp32", 1'000'000'000);
  CLI::App* command = add_command(checkpoint,
                                  {"convert",
                                   "A checkpoint for runs of another precision, in files of another size",
                                   "a checkpoint's folder, or one with checkpoints: then its newest",
                                   "the folder for the new one: it has none yet",
                                   "fp32 for runs in bf16 and fp32, fp64 for those in fp64",
                                   {"fp32", "fp64"},
                                   "1GB",
                                   "layline checkpoint convert saved saved-fp64 --dtype fp64"},
                                  converting);
  command->add_flag("--drop-moments", converting->drops_moments, "weights alone: a third of the size");
  command->callback([converting] { run_convert(*converting); });
}

}  // namespace layline::app
