#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "apps/layline/command.h"
#include "apps/layline/find_trainer.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/sweep_text.h"
#include "apps/layline/terminal.h"
#include "apps/layline/train_launcher.h"
#include "layline/sweep/run_sweep.h"
#include "layline/trainer/config/check_run.h"

namespace layline::app {
namespace {

struct SweepFlags {
  std::string spec, output, program;
  bool json = false;
};

// A line a run, and on a terminal what is going on below them.
class SweepScreen {
 public:
  explicit SweepScreen(bool prints_runs) : prints_runs_(prints_runs), sink_(progress_sink()) {}
  ~SweepScreen() {
    if (sink_) sink_->finish();
  }
  SweepScreen(const SweepScreen&) = delete;
  SweepScreen& operator=(const SweepScreen&) = delete;

  void starting(const sweep::SweepState& state, const sweep::PlannedRun& next) {
    if (is_first_) num_before_ = state.done.size();
    if (is_first_ && prints_runs_) print(sweep_head(state));
    is_first_ = false;
    if (!sink_) return;
    const std::string remark = sweep_remark(state, next);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
    sink_->show({.task = "measuring",
                 .num_done = static_cast<int64_t>(state.done.size() - num_before_),
                 .num_total = state.num_planned - static_cast<int64_t>(num_before_),
                 .elapsed_seconds = elapsed.count(),
                 .remark = remark});
  }

  void finished(const sweep::SweepState& state) {
    if (!prints_runs_) return;
    if (sink_) sink_->finish();
    print(run_line(state));
  }

 private:
  bool prints_runs_;
  std::unique_ptr<base::ProgressSink> sink_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool is_first_ = true;
  size_t num_before_ = 0;
};

void run_sweep_command(const SweepFlags& flags) {
  const SignalQueue signals;
  const sweep::SweepSpec spec = sweep::read_sweep_spec(flags.spec);
  trainer::config::check_run(spec.base);
  TrainLauncher launcher(signals, find_trainer(flags.program));
  SweepScreen screen(!flags.json);
  const sweep::SweepState state =
      sweep::run_sweep(spec, flags.output, machine_name(), launcher,
                       {.starting = [&](const auto& now, const auto& next) { screen.starting(now, next); },
                        .finished = [&](const auto& now) { screen.finished(now); }});
  print(flags.json ? sweep_json(state) : sweep_summary(state, flags.output));
  if (state.interrupt_signal == 0) return;
  fmt::print(stderr, "interrupted: the same command goes on from here\n");
  throw Exit{kSignalled + state.interrupt_signal};
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto flags = std::make_shared<SweepFlags>();
  CLI::App* command = app.add_subcommand("sweep", "Measure layouts on this machine, most promising first");
  command->add_option("sweep", flags->spec, "SWEEP.json; its paths are relative to the current directory")->required();
  command->add_option("--output", flags->output, "run records (CSV); what is there already is not run again")
      ->required()
      ->type_name("RUNS.csv");
  command->add_option("--program", flags->program, "what to start instead of layline-train")->group("");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: layline sweep examples/sweep-small.json --output runs.csv");
  command->callback([flags] { run_sweep_command(*flags); });
}

}  // namespace layline::app
