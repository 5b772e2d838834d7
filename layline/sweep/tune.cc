#include "layline/sweep/tune.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/sweep/tuner.h"

namespace layline::sweep {
namespace {

constexpr size_t kMaxCandidates = 1000;  // the most promising ones

double memory_margin(const PlannedRun& run) {
  const double margin = run.prediction.margin_bytes;
  return margin / (run.job->cluster.gpu.memory_bytes - margin);
}

double number_note(const runs::RunRecord& record, const char* key) {
  return std::strtod(runs::note(record, key).c_str(), nullptr);
}

// Standard error of the median of a record's steps, as a fraction of it, from their quartiles.
double noise_of(const runs::RunRecord& record) {
  constexpr double kErrorPerSpread = 1.2533 / 1.349;  // of normal steps
  const double steps = std::max(1.0, number_note(record, "steps") - 1);
  return kErrorPerSpread * number_note(record, "spread") / std::sqrt(steps);
}

Tuner tuner_of(const std::vector<PlannedRun>& runs, const TuneRequest& request) {
  std::vector<Candidate> candidates;
  for (const PlannedRun& run : runs) {
    candidates.push_back(
        {setting_of(*run.job, run.layout, run.prediction.seconds), run.prediction.step_seconds, memory_margin(run)});
  }
  TunerOptions options;
  options.relative_error_bar = runs.front().job->calibration.relative_error_bar;
  options.memory_relative_sigma = runs.front().job->calibration.memory_relative_sigma;
  options.confidence = request.confidence;
  options.tolerance = request.tolerance;
  return {std::move(candidates), {}, options};
}

trainer::config::RunConfig trial_run(const TuneRequest& request) {
  trainer::config::RunConfig run = request.run;
  run.layout = "auto";
  run.steps = std::min(run.steps, request.steps);
  run.load.clear();
  run.metrics.clear();
  run.checkpoint = {};
  run.data.valid.clear();
  run.data.valid_every_steps = 0;
  run.stop_after_seconds.reset();
  return run;
}

class Tuning {
 public:
  Tuning(const TuneRequest& request, Recorder& recorder, std::vector<PlannedRun> runs, const TuneObserver& observer)
      : request_(request),
        run_(trial_run(request)),
        recorder_(recorder),
        runs_(std::move(runs)),
        observer_(observer),
        tuner_(tuner_of(runs_, request)) {
    state_.num_layouts = static_cast<int64_t>(runs_.size());
    for (size_t i = 0; i < runs_.size(); ++i) state_.num_likely_fit += tuner_.fit_probability(i) >= 0.5 ? 1 : 0;
  }

  TuneState run() {
    take_existing();
    while (const std::optional<size_t> next = choose()) {
      if (!try_one(*next)) break;
    }
    state_.confidence = tuner_.confidence();
    state_.sweep_seconds = sweep_seconds();
    return std::move(state_);
  }

 private:
  void take_existing() {
    std::map<std::string, size_t> positions;
    for (size_t i = 0; i < runs_.size(); ++i) positions[key_of(runs_[i])] = i;
    for (const runs::RunRecord& record : recorder_.existing()) {
      const auto found = positions.find(key_of(record));
      if (found == positions.end()) continue;
      TuneTrial trial = believed(found->second);
      trial.run = swept_of(runs_[found->second], record, /*is_from_before=*/true);
      learn(found->second, record, std::move(trial));
    }
  }

  // None, with the reason in state_.end, when it is over.
  std::optional<size_t> choose() {
    const std::optional<size_t> next = tuner_.next();
    if (!next) state_.end = tuner_.best() ? TuneEnd::kProven : TuneEnd::kNothingLeft;
    if (!next && tuner_.confidence() < request_.confidence) state_.end = TuneEnd::kNothingLeft;
    if (!next) return std::nullopt;
    const bool is_last = static_cast<int64_t>(state_.trials.size()) >= request_.max_trials;
    if (!is_last && state_.spent_seconds < request_.max_seconds) return next;
    state_.end = is_last ? TuneEnd::kTrials : TuneEnd::kTime;
    return std::nullopt;
  }

  // False when the user wants to stop.
  bool try_one(size_t i) {
    if (observer_.starting) observer_.starting(state_, runs_[i]);
    TuneTrial trial = believed(i);
    MeasureOptions options;
    options.time_limit_seconds = request_.time_limit_seconds;
    if (state_.best) {
      options.hopeless_step_seconds =
          *state_.trials[*state_.best].run.step_seconds * request_.stop_when_slower_than_best_by;
    }
    const std::optional<runs::RunRecord> record = recorder_.run(run_, runs_[i], options);
    if (!record) {
      state_.interrupt_signal = recorder_.interrupt_signal();
      state_.end = TuneEnd::kInterrupted;
      return false;
    }
    trial.run = swept_of(runs_[i], *record, /*is_from_before=*/false);
    learn(i, *record, std::move(trial));
    if (observer_.finished) observer_.finished(state_);
    return true;
  }

  TuneTrial believed(size_t i) const {
    TuneTrial trial;
    trial.expected_seconds = tuner_.expected_seconds(i);
    trial.relative_deviation = tuner_.relative_deviation(i);
    trial.fit_probability = tuner_.fit_probability(i);
    return trial;
  }

  void learn(size_t i, const runs::RunRecord& record, TuneTrial trial) {
    const std::string slower_than = runs::note(record, "slower_than_seconds");
    if (trial.run.step_seconds) {
      tuner_.measured(i, *trial.run.step_seconds, noise_of(record));
    } else if (trial.run.status == runs::RunStatus::kOom) {
      tuner_.ran_out_of_memory(i);
    } else if (!slower_than.empty()) {
      tuner_.slower_than(i, number_note(record, "slower_than_seconds"));
    } else {
      tuner_.failed(i);
    }
    const double predicted_bytes = runs_[i].prediction.max_bytes;
    if (trial.run.step_seconds && record.peak_memory_GiB && predicted_bytes > 0) {
      tuner_.measured_memory(i, *record.peak_memory_GiB * base::kGib / predicted_bytes - 1);
    }
    trial.wall_seconds = number_note(record, "wall_seconds");
    trial.confidence_after = tuner_.confidence();
    state_.spent_seconds += trial.wall_seconds;
    const bool is_best = trial.run.step_seconds &&
                         (!state_.best || *trial.run.step_seconds < *state_.trials[*state_.best].run.step_seconds);
    if (is_best) state_.best = state_.trials.size();
    state_.confidence = trial.confidence_after;
    state_.trials.push_back(std::move(trial));
  }

  // Every step as expected, and beside the steps of a run what it took beside them so far.
  double sweep_seconds() const {
    const auto steps = static_cast<double>(run_.steps);
    double beside = 0, num_ran = 0, seconds = 0;
    for (const TuneTrial& trial : state_.trials) {
      if (!trial.run.step_seconds) continue;
      beside += std::max(0.0, trial.wall_seconds - steps * *trial.run.step_seconds);
      ++num_ran;
    }
    if (num_ran == 0) return 0;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (tuner_.fit_probability(i) >= 0.5) seconds += steps * tuner_.expected_seconds(i) + beside / num_ran;
    }
    return seconds;
  }

  const TuneRequest& request_;
  trainer::config::RunConfig run_;
  Recorder& recorder_;
  std::vector<PlannedRun> runs_;
  const TuneObserver& observer_;
  Tuner tuner_;
  TuneState state_;
};

}  // namespace

TuneState tune(const TuneRequest& request, const std::string& output, const std::string& machine, Launcher& launcher,
               const TuneObserver& observer) {
  if (request.run.layout != "auto") {
    throw base::InputError(trainer::config::place_of(request.run, "layout"),
                           "is there, but tuning is to find it; leave it out, or write \"auto\"");
  }
  std::vector<PlannedRun> runs = plan_all(request.run, request.num_ranks, kMaxCandidates);
  const std::string name = std::filesystem::path(request.run.where).stem().string();
  Recorder recorder(output, {name, machine, fingerprint(trial_run(request))}, launcher);
  return Tuning(request, recorder, std::move(runs), observer).run();
}

}  // namespace layline::sweep
