#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/layline/command.h"
#include "apps/layline/job_flags.h"
#include "apps/layline/layout_json.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/units.h"
#include "layline/cost/step.h"
#include "layline/export/launch_files.h"
#include "layline/layout/layout_text.h"
#include "layline/search/search.h"

namespace layline::app {
namespace {

namespace fs = std::filesystem;
using exporting::LaunchFile;
using exporting::LaunchFiles;

struct Flags {
  JobFlags job;
  bool has_engine = false;
  std::string layout, to, output, launcher = "slurm";
  int64_t steps = 100;
  bool json = false;
};

// What is exported, and how it was chosen.
struct Choice {
  layout::Layout layout;
  LaunchFiles files;
  std::string how;
};

exporting::Launcher launcher_named(const std::string& name) {
  const auto& names = exporting::kLauncherNames;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw base::InputError("--launcher", base::unknown_name_message("launcher", name, {names.begin(), names.end()}));
  }
  return static_cast<exporting::Launcher>(found - names.begin());
}

std::string text_of(const spec::Job& job, const layout::Layout& layout) {
  return layout::to_text(layout, layout::text_defaults(job.engine));
}

// The first of the planner's that the framework can run.
Choice planned(const spec::Job& job, exporting::Framework framework, const exporting::ExportOptions& options) {
  constexpr size_t kTried = 200;
  const search::Plan plan = search::find_plan(job, {.fix = {}, .top = kTried, .remedies = false});
  if (plan.best.empty()) {
    print(plan.num_legal == 0 ? fmt::format("No layout is legal. Most often: {}.\n", plan.why_none_is_legal)
                              : "No layout fits; `layline plan` says what would.\n");
    throw Exit{kNothingFits};
  }
  std::string refusal;
  for (const search::PricedLayout& priced : plan.best) {
    try {
      Choice choice = {priced.layout, exporting::launch_files(job, priced.layout, framework, options), ""};
      choice.how = refusal.empty() ? "the planner's first"
                                   : fmt::format("the planner's first that can be exported; its first, {}, cannot ({})",
                                                 text_of(job, plan.best.front().layout), refusal);
      return choice;
    } catch (const base::InputError& error) {
      if (refusal.empty()) refusal = error.what();
    }
  }
  throw base::InputError(
      fmt::format("none of the planner's first {} layouts can be exported; the first: {}", plan.best.size(), refusal));
}

// Makes the folder and writes all files; the first one that cannot be written ends it.
void write_files(const LaunchFiles& files, const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw base::InputError("--output", fmt::format("cannot make the folder {}: {}", folder, error.message()));
  for (const LaunchFile& file : files.files) {
    const fs::path path = fs::path(folder) / file.name;
    base::write_file_atomically(path.string(), file.text);
    constexpr auto kRun = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
    if (file.is_script) fs::permissions(path, kRun, fs::perm_options::add, error);
  }
}

nlohmann::ordered_json json_of_choice(const spec::Job& job, const Choice& choice, exporting::Framework framework,
                                      const Flags& flags) {
  nlohmann::ordered_json json;
  json["schema_version"] = 1;
  json["framework"] = exporting::name_of(framework);
  json["framework_version"] = exporting::version_of(framework);
  json["job"] = json_of(job);
  json["engine"] = job.engine.name;
  json["layout"] = text_of(job, choice.layout);
  json["chosen"] = choice.how;
  json["files"] = nlohmann::ordered_json::object();
  for (const LaunchFile& file : choice.files.files) json["files"][file.name] = file.text;
  if (!flags.output.empty()) json["folder"] = flags.output;
  json["command"] = choice.files.command;
  json["notes"] = choice.files.notes;
  return json;
}

std::string written_text(const spec::Job& job, const Choice& choice, const std::string& folder) {
  std::string text = fmt::format("{}\n{} ({})\n\n", job_title(job), text_of(job, choice.layout), choice.how);
  for (const LaunchFile& file : choice.files.files)
    text += fmt::format("  {}\n", (fs::path(folder) / file.name).string());
  text += "\n";
  for (const std::string& note : choice.files.notes) text += fmt::format("note: {}\n", note);
  return text + fmt::format("\nNext:  cd {} && {}\n", folder, choice.files.command);
}

// One file is printed as it is, so that it can be sent to a file; of several each has its name above.
std::string files_text(const LaunchFiles& files) {
  if (files.files.size() == 1) return files.files.front().text;
  std::string text;
  for (const LaunchFile& file : files.files) text += fmt::format("==> {} <==\n{}\n", file.name, file.text);
  return text;
}

void run_export(const Flags& given) {
  Flags flags = given;
  const exporting::Framework framework = exporting::framework_named(flags.to, "--to");
  if (!flags.has_engine) flags.job.engine = exporting::engine_of(framework);
  const exporting::ExportOptions options = {launcher_named(flags.launcher), flags.steps, flags.job.cluster};
  const spec::Job job = make_job(flags.job);
  Choice choice;
  if (flags.layout.empty()) {
    choice = planned(job, framework, options);
  } else {
    choice.layout = legal_layout(job, flags.layout, "--layout");
    choice.files = exporting::launch_files(job, choice.layout, framework, options);
    choice.how = "as given";
    const cost::StepPrice price = cost::Pricer(job).price(choice.layout);
    if (!price.fits) {
      choice.files.notes.insert(
          choice.files.notes.begin(),
          fmt::format("it is predicted not to fit: {} of {} GiB on the fullest GPU",
                      base::format_gib(price.peak_memory_bytes), base::format_gib(price.capacity_bytes)));
    }
  }
  if (!flags.output.empty()) write_files(choice.files, flags.output);
  if (flags.json) return print(json_text(json_of_choice(job, choice, framework, flags)));
  if (!flags.output.empty()) return print(written_text(job, choice, flags.output));
  print(files_text(choice.files));
  fmt::print(stderr, "{} ({})\n", text_of(job, choice.layout), choice.how);
  for (const std::string& note : choice.files.notes) fmt::print(stderr, "note: {}\n", note);
}

}  // namespace

void add_export(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("export", "Write the files that start a layout in another framework");
  add_job_flags(*command, flags->job);
  command->add_option("--layout", flags->layout,
                      "layout text; dp follows from the GPUs (default: the planner's first)");
  command->add_option("--to", flags->to, "megatron, nemo, torchtitan, nanotron, deepspeed or layline")->required();
  command->add_option("--output", flags->output, "folder for the files (default: print them)");
  command->add_option("--launcher", flags->launcher, "slurm or torchrun")->capture_default_str();
  command->add_option("--steps", flags->steps, "optimizer steps to run")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Example: layline export --model llama-13b --cluster a100-80gb --gpus 64 --global-batch 2048 --seq-len 2048 "
      "--layout \"tp2 pp2 sp\" --to megatron --output run\n"
      "--engine is the one like the framework unless given.");
  command->callback([flags, command] {
    flags->has_engine = command->count("--engine") > 0;
    run_export(*flags);
  });
}

}  // namespace layline::app
