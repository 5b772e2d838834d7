#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "apps/layline/command.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/trainer/config/check_run.h"
#include "layline/trainer/config/resolve_layout.h"

namespace layline::app {
namespace {

namespace config = trainer::config;

constexpr int64_t kMaxRanksOfAMachine = 4096;

struct TrainFlags {
  std::string run;
  int64_t nproc = 1;
  std::vector<std::string> overrides;
  bool check = false;
  std::string program;
  double grace_seconds = Supervisor::kGraceSeconds;
};

// Beside this program.
std::string default_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "layline-train").string();
}

std::string find_program(const TrainFlags& flags) {
  const std::string program = flags.program.empty() ? default_program() : flags.program;
  if (access(program.c_str(), X_OK) == 0) return program;
  throw base::InputError(
      fmt::format("{} was not built, and it is what trains: get libtorch with "
                  "`scripts/setup.sh torch`, then build everything with `make`",
                  program));
}

std::string check_text(const config::RunConfig& run, const config::ResolvedLayout& resolved) {
  const config::Prediction prediction = config::predict(resolved.job, resolved.layout);
  double peak = 0;
  for (const double bytes : prediction.memory_bytes_by_stage) peak = std::max(peak, bytes);
  return fmt::format(
      "{}: good: {} steps of {} ({} parameters)\nlayout {} ({}): about {} a step, {} GiB on the fullest rank\n",
      run.where, base::format_count(run.steps), run.model.title,
      base::format_short_count(static_cast<double>(run.model.num_parameters())), resolved.text, resolved.how,
      base::format_seconds(prediction.step_seconds), base::format_gib(peak, 2));
}

void run_train(const TrainFlags& flags) {
  const SignalQueue signals;
  const config::RunConfig run = config::read_run_config(flags.run, flags.overrides);
  config::check_run(run);
  const config::ResolvedLayout resolved = config::resolve_layout(run, flags.nproc);
  if (flags.check) return print(check_text(run, resolved));
  std::vector<std::string> arguments = {find_program(flags), flags.run};
  for (const std::string& text : flags.overrides) arguments.push_back("--set=" + text);
  const int code = Supervisor(signals, flags.grace_seconds).run(arguments, flags.nproc);
  if (code != 0) throw Exit{code};
}

}  // namespace

void add_train(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command = app.add_subcommand("train", "Train a model on this machine, with a rank for each process");
  command->add_option("run", flags->run, "RUN.json; its paths are relative to the current directory")->required();
  command->add_option("--nproc", flags->nproc, "ranks to start")
      ->check(CLI::Range(int64_t{1}, kMaxRanksOfAMachine))
      ->capture_default_str();
  command->add_option("--set", flags->overrides, "KEY=VALUE: a key of RUN.json, such as optimizer.learning_rate=1e-4")
      ->expected(1)
      ->take_all();
  command->add_flag("--check", flags->check, "only check everything, and say what would run");
  command->add_option("--program", flags->program, "what to start instead of layline-train")->group("");
  command->add_option("--grace-seconds", flags->grace_seconds, "for ranks to end after another one failed")->group("");
  command->footer(
      "Example: layline train run.json --nproc 4 --set \"layout=dp2 tp2 mb4\"\n"
      "Across machines, start layline-train itself: srun layline-train run.json");
  command->callback([flags] { run_train(*flags); });
}

}  // namespace layline::app
