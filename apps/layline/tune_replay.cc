#include "apps/layline/tune_replay.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "apps/layline/terminal.h"
#include "layline/base/text_table.h"
#include "layline/base/units.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;

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

std::string regret_after(const sweep::SweepReplay& replay, size_t trial) {
  if (replay.trials.size() < trial) return "";
  const std::optional<double>& regret = replay.trials[trial - 1].regret_after;
  return regret ? base::format_percent_number(*regret) : std::string(runs::name_of(replay.trials[trial - 1].status));
}

}  // namespace

std::string replay_text(const std::vector<sweep::SweepReplay>& replays) {
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

std::string replay_json(const std::vector<sweep::SweepReplay>& replays) {
  ordered_json json;
  json["schema_version"] = 1;
  json["sweeps"] = ordered_json::object();
  for (const sweep::SweepReplay& replay : replays) json["sweeps"][replay.sweep] = to_json(replay);
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::app
