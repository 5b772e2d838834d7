#include "layline/sweep/tuner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <utility>

namespace layline::sweep {
namespace {

constexpr double kBarInDeviations = 1.7;  // 91 % of a normal distribution
constexpr double kMemoryNoise = 0.01;     // where memory ends, as a fraction of it
constexpr double kFarFromFull = 3;        // in deviations: verdicts beyond say nothing
constexpr size_t kMaxKnown = 500;

// Known runs that say most of the candidates: those most alike to any of them.
std::vector<const KnownRun*> most_alike(const std::vector<Candidate>& candidates, std::vector<const KnownRun*> runs) {
  if (runs.size() <= kMaxKnown) return runs;
  std::vector<std::pair<double, const KnownRun*>> ranked;
  for (const KnownRun* run : runs) {
    double most = 0;
    for (const Candidate& candidate : candidates) most = std::max(most, similarity(candidate.setting, run->setting));
    ranked.emplace_back(-most, run);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  runs.clear();
  for (size_t i = 0; i < kMaxKnown; ++i) runs.push_back(ranked[i].second);
  return runs;
}

// Of the candidates and then of the known runs, before anything is learned. `covariance` is that of two settings, of
// one sweep or not; candidates are of one sweep.
template <typename Covariance>
Belief prior(const std::vector<Candidate>& candidates, const std::vector<const KnownRun*>& known,
             const Covariance& covariance) {
  const size_t n = candidates.size() + known.size();
  const auto setting = [&](size_t i) -> const Setting& {
    return i < candidates.size() ? candidates[i].setting : known[i - candidates.size()]->setting;
  };
  const auto group = [&](size_t i) { return i < candidates.size() ? 0 : 1 + known[i - candidates.size()]->group; };
  std::vector<double> values(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      values[i * n + j] = values[j * n + i] = covariance(setting(i), setting(j), group(i) == group(j));
    }
  }
  return {std::vector<double>(n, 0.0), std::move(values)};
}

auto errors_of_scale(double scale) {
  return [scale](const Setting& a, const Setting& b, bool is_same_sweep) {
    return error_covariance(a, b, is_same_sweep, scale);
  };
}

// Predictions err much more often by a lot than a normal distribution has it: Student's t with 4 degrees of freedom.
constexpr double kDegrees = 4;

double tail_density(double x) { return 0.375 * std::pow(1 + x * x / kDegrees, -2.5); }

double tail_probability(double x) {
  const double u = 1 + x * x / kDegrees;
  return 0.5 + 0.375 * x / std::sqrt(u) * (1 - x * x / (12 * u));
}

// The scale of t-distributed numbers that makes them likeliest, by expectation maximization.
double tail_scale(const std::vector<double>& values) {
  double square = 1;
  for (int iteration = 0; iteration < 100; ++iteration) {
    double sum = 0;
    for (const double x : values) sum += x * x * (kDegrees + 1) / (kDegrees + x * x / square);
    square = std::max(sum / static_cast<double>(values.size()), 1e-4);
  }
  return std::sqrt(square);
}

// The groups with the most runs.
std::vector<size_t> largest_groups(const std::vector<const KnownRun*>& runs) {
  std::map<size_t, int64_t> sizes;
  for (const KnownRun* run : runs) --sizes[run->group];
  std::vector<std::pair<int64_t, size_t>> ranked;
  for (const auto& [group, size] : sizes) ranked.emplace_back(size, group);
  std::sort(ranked.begin(), ranked.end());
  std::vector<size_t> groups;
  for (const auto& [size, group] : ranked) groups.push_back(group);
  return groups;
}

// How far the errors of known sweeps lie from what those of the other sweeps let expect, as the standard deviation of
// the prior: T3. Without two sweeps it follows from the error bar.
double error_scale(const std::vector<const KnownRun*>& timed, const TunerOptions& options) {
  constexpr double kTrial = 0.03;
  constexpr size_t kMaxGroups = 8;
  std::vector<size_t> groups = largest_groups(timed);
  // Parts that all err alike and what is alike only in similar settings are both of this scale.
  if (groups.size() < 2) return options.relative_error_bar / kBarInDeviations / std::numbers::sqrt2;
  groups.resize(std::min(groups.size(), kMaxGroups));
  std::vector<double> deviations;
  for (const size_t group : groups) {
    Belief belief = prior({}, timed, errors_of_scale(kTrial));
    for (size_t i = 0; i < timed.size(); ++i) {
      if (timed[i]->group != group) belief.learn_value(i, *timed[i]->log_time_error, options.noise);
    }
    for (size_t i = 0; i < timed.size(); ++i) {
      if (timed[i]->group != group) continue;
      const double sd = std::hypot(belief.standard_deviation(i), options.noise);
      const double error = timed[i]->unseen_log_time_error.value_or(*timed[i]->log_time_error);
      deviations.push_back((error - belief.mean(i)) / sd);
    }
  }
  return kTrial * tail_scale(deviations);
}

Belief time_belief(const std::vector<Candidate>& candidates, const std::vector<KnownRun>& known,
                   const TunerOptions& options) {
  std::vector<const KnownRun*> timed;
  for (const KnownRun& run : known) {
    if (run.log_time_error) timed.push_back(&run);
  }
  timed = most_alike(candidates, std::move(timed));
  Belief belief = prior(candidates, timed, errors_of_scale(error_scale(timed, options)));
  for (size_t i = 0; i < timed.size(); ++i) {
    belief.learn_value(candidates.size() + i, *timed[i]->log_time_error, options.noise);
  }
  return belief.first(candidates.size());
}

Belief memory_belief(const std::vector<Candidate>& candidates, const std::vector<KnownRun>& known,
                     const TunerOptions& options) {
  std::vector<const KnownRun*> judged;
  for (const KnownRun& run : known) {
    const bool is_far = std::abs(run.memory_margin) > kFarFromFull * options.memory_relative_sigma;
    if (run.is_out_of_memory && !is_far) judged.push_back(&run);
  }
  judged = most_alike(candidates, std::move(judged));
  const double variance = options.memory_relative_sigma * options.memory_relative_sigma;
  Belief belief =
      prior(candidates, judged, [&](const Setting& a, const Setting& b, bool) { return variance * similarity(a, b); });
  for (size_t i = 0; i < judged.size(); ++i) {
    const size_t at = candidates.size() + i;
    if (*judged[i]->is_out_of_memory) {
      belief.learn_at_least(at, judged[i]->memory_margin, kMemoryNoise);
    } else {
      belief.learn_at_most(at, judged[i]->memory_margin, kMemoryNoise);
    }
  }
  return belief.first(candidates.size());
}

}  // namespace

Tuner::Tuner(std::vector<Candidate> candidates, const std::vector<KnownRun>& known, const TunerOptions& options)
    : candidates_(std::move(candidates)),
      options_(options),
      time_(time_belief(candidates_, known, options)),
      memory_(memory_belief(candidates_, known, options)),
      is_tried_(candidates_.size(), false) {}

double Tuner::expected_seconds(size_t i) const { return candidates_[i].predicted_seconds * std::exp(time_.mean(i)); }

double Tuner::relative_deviation(size_t i) const {
  const double inflation = (kDegrees + surprise_) / (kDegrees + static_cast<double>(num_measured_));
  return time_.standard_deviation(i) * std::sqrt(inflation);
}

double Tuner::fit_probability(size_t i) const {
  const double sd = std::hypot(memory_.standard_deviation(i), kMemoryNoise);
  return normal_probability((candidates_[i].memory_margin - memory_.mean(i)) / sd);
}

// What an improvement is measured against: the best, or before there is one the expected time of the planner's own
// pick, which likely fits.
double Tuner::target_log_seconds() const {
  if (best_) return std::log(best_seconds_);
  double target = INFINITY, likeliest = -1;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (is_tried_[i]) continue;
    const double fits = fit_probability(i);
    const bool is_likely = fits >= 0.5;
    if (is_likely && likeliest >= 0.5) {
      target = std::min(target, expected_seconds(i));
    } else if (fits > likeliest) {
      target = expected_seconds(i);
    }
    likeliest = std::max(likeliest, fits);
  }
  return std::log(target);
}

double Tuner::expected_improvement(size_t i, double target) const {
  const double sd = std::hypot(relative_deviation(i), options_.noise);
  const double z = (target - std::log(expected_seconds(i))) / sd;
  const double spread = (kDegrees + z * z) / (kDegrees - 1) * tail_density(z);
  return fit_probability(i) * sd * (z * tail_probability(z) + spread);
}

std::optional<size_t> Tuner::next() const {
  if (best_ && confidence() >= options_.confidence) return std::nullopt;
  const double target = target_log_seconds();
  std::optional<size_t> next;
  double most = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (is_tried_[i]) continue;
    const double improvement = expected_improvement(i, target);
    if (next && improvement <= most) continue;
    next = i;
    most = improvement;
  }
  return next;
}

double Tuner::confidence() const {
  if (!best_) return 0;
  const double bound = std::log(best_seconds_ * (1 - options_.tolerance));
  double none_is_faster = 1;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (is_tried_[i]) continue;
    const double sd = std::max(relative_deviation(i), 1e-9);
    const double is_faster = tail_probability((bound - std::log(expected_seconds(i))) / sd);
    none_is_faster *= 1 - fit_probability(i) * is_faster;
  }
  return none_is_faster;
}

void Tuner::measured(size_t i, double step_seconds, double noise) {
  is_tried_[i] = true;
  noise = std::hypot(noise, options_.noise);
  const double error = std::log(step_seconds / candidates_[i].predicted_seconds);
  const double deviations = (error - time_.mean(i)) / std::hypot(time_.standard_deviation(i), noise);
  surprise_ += deviations * deviations;
  ++num_measured_;
  time_.learn_value(i, error, noise);
  memory_.learn_at_most(i, candidates_[i].memory_margin, kMemoryNoise);
  if (best_ && step_seconds >= best_seconds_) return;
  best_ = i;
  best_seconds_ = step_seconds;
}

void Tuner::slower_than(size_t i, double step_seconds) {
  is_tried_[i] = true;
  time_.learn_at_least(i, std::log(step_seconds / candidates_[i].predicted_seconds), options_.noise);
}

void Tuner::ran_out_of_memory(size_t i) {
  is_tried_[i] = true;
  memory_.learn_at_least(i, candidates_[i].memory_margin, kMemoryNoise);
}

void Tuner::failed(size_t i) { is_tried_[i] = true; }

void Tuner::measured_memory(size_t i, double relative_error) { memory_.learn_value(i, relative_error, kMemoryNoise); }

}  // namespace layline::sweep
