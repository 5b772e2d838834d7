// One rank of a training run. `layline train` starts it, and so do torchrun, srun and mpirun.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "apps/layline_train/bench_mode.h"
#include "apps/layline_train/environment.h"
#include "apps/layline_train/interrupt.h"
#include "apps/layline_train/observers.h"
#include "apps/layline_train/paced_observer.h"
#include "layline/base/error.h"
#include "layline/trainer/config/check_run.h"
#include "layline/trainer/dryrun/report.h"
#include "layline/trainer/loop/train.h"

namespace {

namespace app = layline::app;
namespace config = layline::trainer::config;
namespace dryrun = layline::trainer::dryrun;
namespace loop = layline::trainer::loop;

struct Flags {
  std::string run;
  std::vector<std::string> overrides;
  bool steps_on_stdin = false;
  bool dry_run = false;
  bool json = false;
  std::optional<int64_t> num_ranks;  // of a dry run
};

// The exit code of a command line that asks for help, else none.
std::optional<int> parse(int argc, char** argv, Flags& flags) {
  CLI::App command("One rank of a training run.");
  command.add_option("run", flags.run, "RUN.json; its paths are relative to the current directory")->required();
  command.add_option("--set", flags.overrides, "KEY=VALUE, such as optimizer.learning_rate=1e-4")
      ->expected(1)
      ->take_all();
  CLI::Option* dry_run =
      command.add_flag("--dry-run", flags.dry_run, "check everything, run a step without contents, say its bytes");
  command.add_flag("--json", flags.json, "of a dry run: for programs")->needs(dry_run);
  command.add_option("--ranks", flags.num_ranks, "of a dry run: how many, instead of what the launcher says")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->needs(dry_run);
  command.add_flag("--step-on-stdin", flags.steps_on_stdin)->group("");  // of bench/trainer_vs_pytorch.py
  command.footer(
      "Started by `layline train`, torchrun, srun or mpirun, once for each rank. Example: torchrun --no-python "
      "--nproc-per-node 4 layline-train run.json");
  try {
    command.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return command.exit(help);
  } catch (const CLI::ParseError& error) {
    throw layline::base::InputError(fmt::format("layline-train: {}; see layline-train --help", error.what()));
  }
  return std::nullopt;
}

// Files may differ from machine to machine: a rank that cannot start tells the others.
config::RunConfig read_run(const Flags& flags, const loop::Launch& launch) {
  try {
    config::RunConfig run = config::read_run_config(flags.run, flags.overrides);
    config::check_run(run);
    return run;
  } catch (const layline::base::InputError& error) {
    loop::give_up(error.what(), launch);
  }
}

// Every rank that a launcher starts would find the same: the first one says it.
int run_dry(const Flags& flags) {
  const loop::Launch launch = flags.num_ranks ? loop::Launch{} : app::find_launch(app::variable);
  if (launch.rank != 0) return 0;
  const config::RunConfig run = config::read_run_config(flags.run, flags.overrides);
  const dryrun::Report report = dryrun::check_and_run(run, flags.num_ranks.value_or(launch.world_size));
  app::print(flags.json ? dryrun::to_json(report) : dryrun::to_text(report, run, app::text_style()));
  return dryrun::fits(report, run) ? 0 : app::kNothingFits;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "bench") return app::run_bench_mode(argc, argv);
  Flags flags;
  if (const std::optional<int> code = parse(argc, argv, flags)) return *code;
  if (flags.dry_run) return run_dry(flags);
  const loop::Launch launch = app::find_launch(app::variable);
  app::ignore_lost_readers();
  if (app::is_launched(app::variable)) app::end_with_parent();
  const config::RunConfig run = read_run(flags, launch);
  const std::unique_ptr<loop::Observer> observer =
      flags.steps_on_stdin ? std::make_unique<app::PacedObserver>() : app::make_observer(run, launch);
  loop::train(run, launch, *observer);
  constexpr int kSignalled = 128;
  return app::stop_signal() == 0 ? 0 : kSignalled + app::stop_signal();
}

int fail(int code, const char* what) {
  std::fprintf(stderr, "error: %s\n", what);
  return code;
}

int run_and_report(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const app::Exit& exit) {
    return exit.code;
  } catch (const loop::FailedElsewhere& failure) {
    return failure.is_input_error() ? app::kBadInput : app::kRunFailed;
  } catch (const layline::base::InputError& error) {
    return fail(app::kBadInput, error.what());
  } catch (const std::exception& error) {
    return fail(app::kRunFailed, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run_and_report(argc, argv);
  std::fflush(nullptr);
  // After a failure threads may still wait for ranks that are gone; destructors of statics would wait for them.
  if (code != 0) std::_Exit(code);
  return code;
}
