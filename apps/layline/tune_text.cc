#include "apps/layline/tune_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "layline/base/units.h"

namespace layline::app {
namespace {

using nlohmann::ordered_json;
using sweep::TuneEnd;
using sweep::TuneState;
using sweep::TuneTrial;

const TuneTrial& best_of(const TuneState& state) { return state.trials[*state.best]; }

const char* name_of(TuneEnd end) {
  switch (end) {
    case TuneEnd::kProven:
      return "proven";
    case TuneEnd::kTrials:
      return "trials";
    case TuneEnd::kTime:
      return "time";
    case TuneEnd::kNothingLeft:
      return "nothing left";
    case TuneEnd::kInterrupted:
      break;
  }
  return "interrupted";
}

std::string why_it_ended(const TuneState& state) {
  switch (state.end) {
    case TuneEnd::kProven:
      return "nothing else is likely faster";
    case TuneEnd::kTrials:
      return "all trials were made";
    case TuneEnd::kTime:
      return "the time is over";
    case TuneEnd::kNothingLeft:
      return "nothing is left to try";
    case TuneEnd::kInterrupted:
      break;
  }
  return "interrupted";
}

std::string percent(double fraction) { return base::format_percent_number(fraction) + " %"; }

// What the measured best gains on the layout that the plan has first.
std::string gain_text(const TuneState& state) {
  const TuneTrial& first = state.trials.front();
  const TuneTrial& best = best_of(state);
  if (*state.best == 0 || !first.run.step_seconds) return "";
  return fmt::format("{} faster than the planner's first pick, {}\n",
                     percent(*first.run.step_seconds / *best.run.step_seconds - 1), first.run.planned.text);
}

ordered_json to_json(const TuneTrial& trial) {
  const auto seconds = trial.run.step_seconds;
  return {{"layout", trial.run.planned.text},
          {"status", runs::name_of(trial.run.status)},
          {"reason", trial.run.reason},
          {"step_seconds", seconds ? ordered_json(*seconds) : ordered_json()},
          {"planned_step_seconds", trial.run.planned.prediction.step_seconds},
          {"predicted_step_seconds", trial.expected_seconds},
          {"predicted_relative_deviation", trial.relative_deviation},
          {"fit_probability", trial.fit_probability},
          {"confidence", trial.confidence_after},
          {"wall_seconds", trial.wall_seconds},
          {"is_from_before", trial.run.is_from_before}};
}

}  // namespace

std::string tune_head(const TuneState& state) {
  std::string text = fmt::format("{} legal layouts, {} likely fit", base::format_count(state.num_layouts),
                                 base::format_count(state.num_likely_fit));
  if (!state.trials.empty()) text += fmt::format("; {} tried before", state.trials.size());
  return text + "\n";
}

std::string trial_line(const TuneState& state) {
  const TuneTrial& trial = state.trials.back();
  std::string line = fmt::format("{:>5}  {:<36}", state.trials.size(), trial.run.planned.text);
  if (!trial.run.step_seconds) {
    return line + fmt::format("  {}: {}\n", runs::name_of(trial.run.status), trial.run.reason);
  }
  const bool is_best = state.best == state.trials.size() - 1;
  line += fmt::format("  {:.4g} s (expected {:.4g} ± {})", *trial.run.step_seconds, trial.expected_seconds,
                      percent(trial.relative_deviation));
  return line + fmt::format("{}  {} sure\n", is_best ? "  best" : "", percent(trial.confidence_after));
}

std::string tune_remark(const TuneState& state, const sweep::PlannedRun& next) {
  if (!state.best) return next.text;
  return fmt::format("best {}: {:.4g} s, {} sure · now {}", best_of(state).run.planned.text,
                     *best_of(state).run.step_seconds, percent(state.confidence), next.text);
}

std::string tune_summary(const TuneState& state, const sweep::TuneRequest& request, const std::string& run_json) {
  if (!state.best) return fmt::format("\nNo layout ran: {}.\n", why_it_ended(state));
  const TuneTrial& best = best_of(state);
  std::string text = fmt::format("\nBest: {}  {:.4g} s a step, {} tok/s\n", best.run.planned.text,
                                 *best.run.step_seconds, base::format_number(*best.run.tokens_per_second));
  text += gain_text(state);
  text += fmt::format("{} sure that no other layout is more than {} faster, after {} of {} trials: {}.\n",
                      percent(state.confidence), percent(request.tolerance), state.trials.size(), request.max_trials,
                      why_it_ended(state));
  text += fmt::format("Measuring all {} that likely fit would take about {}; this took {}.\n",
                      base::format_count(state.num_likely_fit), base::format_seconds(state.sweep_seconds),
                      base::format_seconds(state.spent_seconds));
  return text + fmt::format("\n{}\n\nNext:  layline train {} --nproc {} --set \"layout={}\"\n", run_json,
                            request.run.where, request.num_ranks, best.run.planned.text);
}

std::string tune_json(const TuneState& state, const sweep::TuneRequest& request, const std::string& run_json) {
  ordered_json json;
  json["schema_version"] = 1;
  json["ranks"] = request.num_ranks;
  json["num_layouts"] = state.num_layouts;
  json["num_likely_fit"] = state.num_likely_fit;
  json["trials"] = ordered_json::array();
  for (const TuneTrial& trial : state.trials) json["trials"].push_back(to_json(trial));
  json["best_layout"] = state.best ? ordered_json(best_of(state).run.planned.text) : ordered_json();
  json["best_step_seconds"] = state.best ? ordered_json(*best_of(state).run.step_seconds) : ordered_json();
  json["best_run"] = run_json.empty() ? ordered_json() : ordered_json::parse(run_json);
  json["confidence"] = state.confidence;
  json["is_proven"] = state.end == TuneEnd::kProven;
  json["ended_by"] = name_of(state.end);
  json["spent_seconds"] = state.spent_seconds;
  json["sweep_seconds"] = state.sweep_seconds;
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::app
