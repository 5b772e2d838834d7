#include "layline/sweep/tune.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/layline/command.h"
#include "apps/layline/find_trainer.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "apps/layline/train_launcher.h"
#include "apps/layline/tune_replay.h"
#include "apps/layline/tune_text.h"
#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/progress.h"
#include "layline/sweep/replay.h"
#include "layline/trainer/config/check_run.h"

namespace layline::app {
namespace {

struct TuneFlags {
  std::string run, output, program;
  int64_t nproc = 1;
  int64_t steps = 5;
  double minutes = 60;
  std::vector<std::string> replay;
  std::string engine;
  int64_t trials = 10;
  double confidence = 0.95;
  bool json = false;
};

void run_replay(const TuneFlags& flags) {
  std::vector<runs::RunTable> tables;
  for (const std::string& file : flags.replay) tables.push_back(runs::read_runs(file));
  const auto sink = progress_sink();
  std::optional<base::Progress> progress;
  sweep::ReplayOptions options;
  options.engine = flags.engine;
  options.max_trials = flags.trials;
  options.confidence = flags.confidence;
  options.progress = [&](size_t, size_t total) {
    if (!progress) progress.emplace(sink.get(), "refitting", static_cast<int64_t>(total));
    progress->advance();
  };
  const std::vector<sweep::SweepReplay> replays = sweep::replay(tables, options);
  progress.reset();
  if (replays.empty()) {
    throw base::InputError(flags.replay.front(), "has no sweep with a legal layout that ran and was timed");
  }
  print(flags.json ? replay_json(replays) : replay_text(replays));
}

// A line a trial, and on a terminal what is going on below them.
class TuneScreen {
 public:
  TuneScreen(bool prints_trials, int64_t max_trials)
      : prints_trials_(prints_trials), max_trials_(max_trials), sink_(progress_sink()) {}
  ~TuneScreen() {
    if (sink_) sink_->finish();
  }
  TuneScreen(const TuneScreen&) = delete;
  TuneScreen& operator=(const TuneScreen&) = delete;

  void starting(const sweep::TuneState& state, const sweep::PlannedRun& next) {
    if (is_first_ && prints_trials_) print(tune_head(state));
    is_first_ = false;
    if (!sink_) return;
    const std::string remark = tune_remark(state, next);
    sink_->show({.task = "tuning",
                 .num_done = static_cast<int64_t>(state.trials.size()),
                 .num_total = max_trials_,
                 .elapsed_seconds = state.spent_seconds,
                 .remark = remark});
  }

  void finished(const sweep::TuneState& state) {
    if (!prints_trials_) return;
    if (sink_) sink_->finish();
    print(trial_line(state));
  }

 private:
  bool prints_trials_;
  int64_t max_trials_;
  std::unique_ptr<base::ProgressSink> sink_;
  bool is_first_ = true;
};

// The user's RUN.json with the best layout in it.
std::string run_json(const std::string& file, const sweep::TuneState& state) {
  if (!state.best) return "";
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(base::read_file(file));
  json["layout"] = state.trials[*state.best].run.planned.text;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int exit_code(const sweep::TuneState& state) {
  if (state.interrupt_signal != 0) return kSignalled + state.interrupt_signal;
  if (state.best) return 0;
  const bool all_are_too_large = std::all_of(state.trials.begin(), state.trials.end(), [](const auto& trial) {
    return trial.run.status == runs::RunStatus::kOom;
  });
  return all_are_too_large ? kNothingFits : kRunFailed;
}

void run_trials(const TuneFlags& flags) {
  const SignalQueue signals;
  sweep::TuneRequest request;
  request.run = trainer::config::read_run_config(flags.run);
  trainer::config::check_run(request.run);
  request.num_ranks = flags.nproc;
  request.max_trials = flags.trials;
  request.max_seconds = flags.minutes * 60;
  request.steps = flags.steps;
  request.confidence = flags.confidence;
  TrainLauncher launcher(signals, find_trainer(flags.program));
  TuneScreen screen(!flags.json, flags.trials);
  const sweep::TuneState state =
      sweep::tune(request, flags.output, machine_name(), launcher,
                  {.starting = [&](const auto& now, const auto& next) { screen.starting(now, next); },
                   .finished = [&](const auto& now) { screen.finished(now); }});
  const std::string best = run_json(flags.run, state);
  print(flags.json ? tune_json(state, request, best) : tune_summary(state, request, best));
  if (state.interrupt_signal != 0) fmt::print(stderr, "interrupted: the same command goes on from here\n");
  if (const int code = exit_code(state); code != 0) throw Exit{code};
}

void run_tune(const TuneFlags& flags) {
  if (!flags.replay.empty()) return run_replay(flags);
  if (flags.run.empty()) throw base::InputError("tune", "found neither RUN.json nor --replay RUNS.csv");
  if (flags.output.empty()) throw base::InputError("--output", "is missing: the file for the records of the trials");
  run_trials(flags);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand("tune", "Find the best layout in as few measured runs as it takes");
  CLI::Option* run =
      command->add_option("run", flags->run, "RUN.json; its paths are relative to the current directory");
  command->add_option("--nproc", flags->nproc, "ranks to start")
      ->check(CLI::Range(int64_t{1}, int64_t{4096}))
      ->capture_default_str();
  CLI::Option* output =
      command->add_option("--output", flags->output, "records of the trials (CSV); those there are not made again")
          ->type_name("RUNS.csv");
  command->add_option("--steps", flags->steps, "of a trial")
      ->check(CLI::Range(int64_t{2}, int64_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--minutes", flags->minutes, "after which no trial starts")
      ->check(CLI::Range(0.0, 1e7))
      ->capture_default_str();
  command->add_option("--trials", flags->trials, "layouts to try at most; of a replay, in each sweep")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->capture_default_str();
  command->add_option("--confidence", flags->confidence, "that nothing else is faster by more than 1 %, to stop at")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_option("--replay", flags->replay, "recorded sweeps to tune on instead of running (CSV)")
      ->type_name("RUNS.csv")
      ->excludes(run)
      ->excludes(output);
  command->add_option("--engine", flags->engine, "of a replay: engine of all runs, instead of the engine column");
  command->add_option("--program", flags->program, "what to start instead of layline-train")->group("");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(
      "Example: layline tune examples/run-small.json --nproc 2 --output tuned.csv --minutes 10\n"
      "Or on recorded sweeps: layline tune --replay data/published/hagemann2024_a100.csv");
  command->callback([flags] { run_tune(*flags); });
}

}  // namespace layline::app
