#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "layline/base/error.h"
#include "layline/base/progress.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"
#include "layline/sweep/replay.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;

struct TuneFlags {
  std::vector<std::string> replay;
  std::string engine;
  int64_t trials = 10;
  double confidence = 0.95;
  bool json = false;
};

template <typename Number>
ordered_json value_or_null(const std::optional<Number>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json to_json(const sweep::Trial& trial) {
  return {{"layout", trial.layout},
          {"planned_step_seconds", trial.planned_step_seconds},
          {"predicted_step_seconds", trial.predicted_step_seconds},
          {"fit_probability", trial.fit_probability},
          {"status", runs::name_of(trial.status)},
          {"step_seconds", value_or_null(trial.step_seconds)},
          {"confidence", trial.confidence_after}};
}

ordered_json to_json(const sweep::SweepReplay& replay) {
  ordered_json json;
  json["num_layouts"] = replay.num_layouts;
  json["num_ran"] = replay.num_ran;
  json["best_step_seconds"] = replay.best_seconds;
  json["trials"] = ordered_json::array();
  json["regret_after_trial"] = ordered_json::array();
  for (const sweep::Trial& trial : replay.trials) {
    json["trials"].push_back(to_json(trial));
    json["regret_after_trial"].push_back(value_or_null(trial.regret_after));
  }
  json["best_layout"] = replay.best_layout;
  json["is_proven"] = replay.is_proven;
  json["trials_within_tolerance"] = value_or_null(replay.trials_within_tolerance);
  json["sweep_gpu_seconds"] = replay.sweep_gpu_seconds;
  json["tuned_gpu_seconds"] = replay.tuned_gpu_seconds;
  return json;
}

std::string json_text(const std::vector<sweep::SweepReplay>& replays) {
  ordered_json json;
  json["schema_version"] = 1;
  json["sweeps"] = ordered_json::object();
  for (const sweep::SweepReplay& replay : replays) json["sweeps"][replay.sweep] = to_json(replay);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string regret_after(const sweep::SweepReplay& replay, size_t trial) {
  if (replay.trials.size() < trial) return "";
  const std::optional<double>& regret = replay.trials[trial - 1].regret_after;
  return regret ? base::format_percent_number(*regret) : std::string(runs::name_of(replay.trials[trial - 1].status));
}

std::string table_text(const std::vector<sweep::SweepReplay>& replays) {
  base::TextTable table({{.title = "sweep", .can_shorten = true},
                         {.title = "layouts", .align = base::Align::kRight},
                         {.title = "ran", .align = base::Align::kRight, .drop_priority = 2},
                         {.title = "regret % after 1", .align = base::Align::kRight},
                         {.title = "2", .align = base::Align::kRight},
                         {.title = "3", .align = base::Align::kRight},
                         {.title = "within 1 %", .align = base::Align::kRight},
                         {.title = "trials", .align = base::Align::kRight},
                         {.title = "best found", .drop_priority = 1}});
  for (const sweep::SweepReplay& r : replays) {
    table.add_row({r.sweep, base::format_count(r.num_layouts), base::format_count(r.num_ran), regret_after(r, 1),
                   regret_after(r, 2), regret_after(r, 3),
                   r.trials_within_tolerance ? fmt::format("{}", *r.trials_within_tolerance) : "-",
                   fmt::format("{}{}", r.trials.size(), r.is_proven ? "" : "*"), r.best_layout});
  }
  std::string text = table.render(text_style());
  text +=
      "\nregret: the best found so far against the best of the sweep; within 1 %: trials until then; trials: until\n"
      "nothing else was likely faster (*: until they ended, or nothing was left).\n";
  return text;
}

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
  print(flags.json ? json_text(replays) : table_text(replays));
}

}  // namespace

void add_tune(CLI::App& app) {
  auto flags = std::make_shared<TuneFlags>();
  CLI::App* command = app.add_subcommand("tune", "Find the best layout in as few measured runs as it takes");
  command->add_option("--replay", flags->replay, "recorded sweeps to tune on instead of running (CSV)")
      ->type_name("RUNS.csv")
      ->required();
  command->add_option("--engine", flags->engine, "engine of all runs, instead of the engine column");
  command->add_option("--trials", flags->trials, "layouts to try at most, in each sweep")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->capture_default_str();
  command->add_option("--confidence", flags->confidence, "that nothing else is faster by more than 1 %, to stop at")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "print JSON");
  command->footer("Example: layline tune --replay data/published/hagemann2024_a100.csv");
  command->callback([flags] { run_replay(*flags); });
}

}  // namespace layline::app
