#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/layline/command.h"
#include "apps/layline/find_trainer.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/trainer/config/check_run.h"
#include "layline/trainer/config/resolve_layout.h"

namespace layline::app {
namespace {

namespace config = trainer::config;

constexpr int64_t kMaxRanks = 1'000'000;
constexpr int64_t kMaxRanksOfAMachine = 4096;

struct TrainFlags {
  std::string run;
  int64_t nproc = 1;
  std::vector<std::string> overrides;
  bool check = false;
  bool dry_run = false;
  bool json = false;
  std::string program;
  double grace_seconds = Supervisor::kGraceSeconds;
};

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

// Becomes the first of nproc ranks, which needs no other.
[[noreturn]] void run_dry(const TrainFlags& flags) {
  std::vector<std::string> arguments = {find_trainer(flags.program), flags.run, "--dry-run"};
  if (flags.json) arguments.emplace_back("--json");
  for (const std::string& text : flags.overrides) arguments.push_back("--set=" + text);
  become(arguments, rank_environment(0, flags.nproc, /*master_port=*/1));
}

void run_train(const TrainFlags& flags) {
  if (flags.dry_run) run_dry(flags);
  if (flags.nproc > kMaxRanksOfAMachine) {
    throw base::InputError(
        "--nproc", fmt::format("found {}, want 1 to {}; only --dry-run takes more", flags.nproc, kMaxRanksOfAMachine));
  }
  const SignalQueue signals;
  const config::RunConfig run = config::read_run_config(flags.run, flags.overrides);
  config::check_run(run);
  const config::ResolvedLayout resolved = config::resolve_layout(run, flags.nproc);
  if (flags.check) return print(check_text(run, resolved));
  std::vector<std::string> arguments = {find_trainer(flags.program), flags.run};
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
      ->check(CLI::Range(int64_t{1}, kMaxRanks))
      ->capture_default_str();
  command->add_option("--set", flags->overrides, "KEY=VALUE: a key of RUN.json, such as optimizer.learning_rate=1e-4")
      ->expected(1)
      ->take_all();
  command->add_flag("--check", flags->check, "only check everything, and say what would run");
  CLI::Option* dry_run = command->add_flag(
      "--dry-run", flags->dry_run, "check everything and run a step without contents: the exact bytes of every stage");
  command->add_flag("--json", flags->json, "of a dry run: for programs")->needs(dry_run);
  command->add_option("--program", flags->program, "what to start instead of layline-train")->group("");
  command->add_option("--grace-seconds", flags->grace_seconds, "for ranks to end after another one failed")->group("");
  command->footer(
      "Example: layline train run.json --nproc 4 --set \"layout=dp2 tp2 mb4\"\n"
      "Across machines, start layline-train itself: srun layline-train run.json");
  command->callback([flags] { run_train(*flags); });
}

}  // namespace layline::app
