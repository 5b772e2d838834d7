#include "layline/calibrate/forecast.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "layline/calibrate/entry.h"
#include "layline/calibrate/score.h"
#include "layline/cost/step.h"
#include "layline/spec/registry.h"

namespace layline::calibrate {
namespace {

constexpr double kBarShare = 0.91;
constexpr size_t kMaxLeftOut = 4;   // sweeps beside the one to be forecast, the largest
constexpr int kWarmIterations = 8;  // from a fit to almost the same runs
constexpr double kLeastBar = 0.03;  // repeats of one run differ by a percent or two

// Prices runs job by job with one calibration.
class Forecaster {
 public:
  Forecaster(const Fit& fit, double relative_error_bar) : fit_(fit), relative_error_bar_(relative_error_bar) {}

  ForecastRun forecast(const Entry& entry) {
    Priced& priced = jobs_[entry.job.get()];
    if (!priced.pricer) {
      auto job = std::make_shared<spec::Job>(*entry.job);
      job->calibration.memory_relative_sigma = fit_.memory_relative_sigma;
      priced.job = job;
      priced.pricer.emplace(job, fit_.coefficients);
    }
    ForecastRun run;
    run.record = entry.record;
    run.job = priced.job;
    run.layout = entry.layout;
    run.prediction = predict(*priced.pricer, entry.layout, memory_kind_of(*entry.record), relative_error_bar_);
    return run;
  }

 private:
  struct Priced {
    std::shared_ptr<const spec::Job> job;
    std::optional<cost::Pricer> pricer;
  };
  Fit fit_;
  double relative_error_bar_;
  std::map<const spec::Job*, Priced> jobs_;
};

// Predicts known runs by fits that leave their sweep out as well, which tells how far unseen runs may lie. Such a fit
// starts where the fit to all known ones ended, and only the times are fitted again.
void predict_unseen(const std::vector<size_t>& others, const std::vector<Entry>& entries, const Fit& fit_to_others,
                    std::vector<ForecastRun>& known) {
  std::map<std::string, std::vector<size_t>> sweeps;  // positions among the others
  for (size_t k = 0; k < others.size(); ++k) sweeps[entries[others[k]].sweep].push_back(k);
  if (sweeps.size() < 2) return;
  std::vector<std::pair<std::string, std::vector<size_t>>> largest(sweeps.begin(), sweeps.end());
  std::stable_sort(largest.begin(), largest.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  largest.resize(std::min(largest.size(), kMaxLeftOut));
  for (const auto& [sweep, left_out] : largest) {
    std::vector<Observation> seen;
    for (const size_t i : others) {
      Observation run = observation_of(entries[i], entries[i].sweep);
      run.memory_bytes = 0;
      run.judged = false;
      if (entries[i].sweep != sweep && run.seconds > 0) seen.push_back(std::move(run));
    }
    if (seen.empty()) continue;
    Forecaster forecaster(fit(seen, fit_to_others, {.max_iterations = kWarmIterations}), 0);
    for (const size_t k : left_out) {
      known[k].unseen_step_seconds = forecaster.forecast(entries[others[k]]).prediction.step_seconds;
    }
  }
}

bool is_said_unscored(const Entry& entry) { return entry.record->scored && !*entry.record->scored; }

Forecast forecast_of(const std::string& sweep, const std::vector<size_t>& own, const std::vector<size_t>& others,
                     const std::vector<Entry>& entries) {
  Forecast forecast;
  forecast.sweep = sweep;
  Fit fit_to_others;
  forecast.relative_error_bar = spec::Calibration{}.relative_error_bar;
  if (const auto shipped = shipped_without(own, entries, LeaveOut::kSweep)) {
    fit_to_others = fit_of(*shipped);
    forecast.relative_error_bar = shipped->relative_error_bar;
  } else {
    std::vector<Observation> seen;
    for (const size_t i : others) seen.push_back(observation_of(entries[i], entries[i].sweep));
    fit_to_others = fit(seen, Fit{}, FitOptions{});
    const bool has_times = std::any_of(seen.begin(), seen.end(), [](const auto& run) { return run.seconds > 0; });
    if (has_times) forecast.relative_error_bar = std::max(kLeastBar, error_quantile(seen, fit_to_others, kBarShare));
    Forecaster forecaster(fit_to_others, forecast.relative_error_bar);
    for (const size_t i : others) forecast.known.push_back(forecaster.forecast(entries[i]));
    predict_unseen(others, entries, fit_to_others, forecast.known);
  }
  forecast.memory_relative_sigma = fit_to_others.memory_relative_sigma;
  Forecaster forecaster(fit_to_others, forecast.relative_error_bar);
  for (const size_t i : own) forecast.runs.push_back(forecaster.forecast(entries[i]));
  return forecast;
}

}  // namespace

std::vector<Forecast> forecast_sweeps(const std::vector<runs::RunTable>& tables, const ForecastOptions& options) {
  const std::vector<Entry> entries = entries_of(tables, {.engine = options.engine});
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> sweeps;  // by name and calibration
  std::map<std::string, std::vector<size_t>> learned;                         // by calibration
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].priced || is_said_unscored(entries[i])) continue;
    sweeps[{entries[i].sweep, entries[i].key}].push_back(i);
    if (learns_from(entries[i])) learned[entries[i].key].push_back(i);
  }
  std::vector<Forecast> forecasts;
  for (const auto& [name, own] : sweeps) {
    std::vector<size_t> others;
    for (const size_t i : learned[name.second]) {
      if (entries[i].sweep != name.first) others.push_back(i);
    }
    forecasts.push_back(forecast_of(name.first, own, others, entries));
    if (options.progress) options.progress(forecasts.size(), sweeps.size());
  }
  return forecasts;
}

}  // namespace layline::calibrate
