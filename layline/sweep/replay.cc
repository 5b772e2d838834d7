#include "layline/sweep/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "layline/calibrate/forecast.h"
#include "layline/calibrate/score.h"
#include "layline/layout/layout_text.h"
#include "layline/sweep/tuner.h"

namespace layline::sweep {
namespace {

using calibrate::Forecast;
using calibrate::ForecastRun;

// A layout of a sweep, with all its repeats.
struct Recorded {
  std::string layout;
  Candidate candidate;
  double num_gpus = 0;
  std::vector<double> seconds;
  runs::RunStatus status = runs::RunStatus::kFail;  // ok when one repeat was
  std::optional<double> real_seconds() const {
    return seconds.empty() ? std::nullopt : std::optional(calibrate::median(seconds));
  }
};

double memory_margin(const ForecastRun& run) {
  const double margin = run.prediction.margin_bytes;
  return margin / (run.job->cluster.gpu.memory_bytes - margin);
}

std::vector<Recorded> recorded_layouts(const std::vector<const ForecastRun*>& runs) {
  std::vector<Recorded> layouts;
  std::map<std::string, size_t> positions;
  for (const ForecastRun* run : runs) {
    const std::string text = layout::to_text(run->layout, layout::text_defaults(run->job->engine));
    const auto [at, is_new] = positions.emplace(text, layouts.size());
    if (is_new) {
      Recorded& recorded = layouts.emplace_back();
      recorded.layout = text;
      recorded.candidate = {setting_of(*run->job, run->layout, run->prediction.seconds), run->prediction.step_seconds,
                            memory_margin(*run)};
      recorded.num_gpus = static_cast<double>(run->job->num_gpus);
      recorded.status = run->record->status.value_or(runs::RunStatus::kFail);
    }
    Recorded& recorded = layouts[at->second];
    if (run->record->status != runs::RunStatus::kOk) continue;
    recorded.status = runs::RunStatus::kOk;
    if (const auto seconds = runs::step_seconds(*run->record)) recorded.seconds.push_back(*seconds);
  }
  // A run that worked without a time teaches nothing here.
  std::erase_if(layouts, [](const Recorded& r) { return r.status == runs::RunStatus::kOk && r.seconds.empty(); });
  return layouts;
}

std::vector<KnownRun> known_runs(const Forecast& forecast) {
  std::vector<KnownRun> known;
  std::map<std::string, size_t> groups;
  for (const ForecastRun& run : forecast.known) {
    KnownRun& entry = known.emplace_back();
    entry.setting = setting_of(*run.job, run.layout, run.prediction.seconds);
    entry.group = groups.emplace(runs::sweep_name(*run.record), groups.size()).first->second;
    entry.memory_margin = memory_margin(run);
    const bool ok = run.record->status == runs::RunStatus::kOk;
    if (ok || run.record->status == runs::RunStatus::kOom) entry.is_out_of_memory = !ok;
    const auto seconds = runs::step_seconds(*run.record);
    if (!ok || !seconds) continue;
    entry.log_time_error = std::log(*seconds / run.prediction.step_seconds);
    if (run.unseen_step_seconds > 0) entry.unseen_log_time_error = std::log(*seconds / run.unseen_step_seconds);
  }
  return known;
}

Tuner tuner_of(const Forecast& forecast, const std::vector<Recorded>& layouts, const ReplayOptions& options) {
  std::vector<Candidate> candidates;
  candidates.reserve(layouts.size());
  for (const Recorded& recorded : layouts) candidates.push_back(recorded.candidate);
  TunerOptions tuning;
  tuning.relative_error_bar = forecast.relative_error_bar;
  tuning.memory_relative_sigma = forecast.memory_relative_sigma;
  tuning.confidence = options.confidence;
  tuning.tolerance = options.tolerance;
  return {std::move(candidates), known_runs(forecast), tuning};
}

Trial look_up(Tuner& tuner, size_t i, const Recorded& recorded) {
  Trial trial;
  trial.layout = recorded.layout;
  trial.predicted_step_seconds = tuner.expected_seconds(i);
  trial.planned_step_seconds = recorded.candidate.predicted_seconds;
  trial.fit_probability = tuner.fit_probability(i);
  trial.status = recorded.status;
  trial.step_seconds = recorded.real_seconds();
  if (trial.step_seconds) {
    tuner.measured(i, *trial.step_seconds);
  } else if (trial.status == runs::RunStatus::kOom) {
    tuner.ran_out_of_memory(i);
  } else {
    tuner.failed(i);
  }
  trial.confidence_after = tuner.confidence();
  return trial;
}

void run_trials(Tuner tuner, const std::vector<Recorded>& layouts, const ReplayOptions& options, SweepReplay& result) {
  while (static_cast<int64_t>(result.trials.size()) < options.max_trials) {
    const std::optional<size_t> i = tuner.next();
    if (!i) break;
    Trial trial = look_up(tuner, *i, layouts[*i]);
    if (trial.step_seconds) result.tuned_gpu_seconds += *trial.step_seconds * layouts[*i].num_gpus;
    if (const auto best = tuner.best()) {
      trial.regret_after = *layouts[*best].real_seconds() / result.best_seconds - 1;
      result.best_layout = layouts[*best].layout;
    }
    result.trials.push_back(std::move(trial));
    const bool is_within = result.trials.back().regret_after && *result.trials.back().regret_after <= options.tolerance;
    if (is_within && !result.trials_within_tolerance) {
      result.trials_within_tolerance = static_cast<int64_t>(result.trials.size());
    }
  }
  result.is_proven = tuner.best() && tuner.confidence() >= options.confidence;
}

// Layouts can be compared where the job is the same; a sweep of several jobs is as many here.
std::map<std::string, std::vector<const ForecastRun*>> by_job(const Forecast& forecast) {
  std::map<const spec::Job*, std::vector<const ForecastRun*>> jobs;
  for (const ForecastRun& run : forecast.runs) jobs[run.job.get()].push_back(&run);
  std::map<std::string, std::vector<const ForecastRun*>> named;
  for (auto& [job, runs] : jobs) {
    const std::string name = jobs.size() == 1 ? forecast.sweep
                                              : fmt::format("{}, {} GPUs, seq {}, batch {}", forecast.sweep,
                                                            job->num_gpus, job->sequence_length, job->global_batch);
    auto& all = named[name];
    all.insert(all.end(), runs.begin(), runs.end());
  }
  return named;
}

}  // namespace

std::vector<SweepReplay> replay(const std::vector<runs::RunTable>& tables, const ReplayOptions& options) {
  std::vector<SweepReplay> replays;
  for (const Forecast& forecast : calibrate::forecast_sweeps(tables, {options.engine, options.progress})) {
    for (const auto& [name, runs] : by_job(forecast)) {
      const std::vector<Recorded> layouts = recorded_layouts(runs);
      SweepReplay result;
      result.sweep = name;
      result.num_layouts = static_cast<int64_t>(layouts.size());
      result.best_seconds = INFINITY;
      for (const Recorded& recorded : layouts) {
        const auto seconds = recorded.real_seconds();
        if (!seconds) continue;
        ++result.num_ran;
        result.best_seconds = std::min(result.best_seconds, *seconds);
        result.sweep_gpu_seconds += *seconds * recorded.num_gpus;
      }
      if (result.num_ran == 0) continue;
      run_trials(tuner_of(forecast, layouts, options), layouts, options, result);
      replays.push_back(std::move(result));
    }
  }
  return replays;
}

}  // namespace layline::sweep
