#include "layline/sweep/tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace layline::sweep {
namespace {

constexpr double kBarInDeviations = 1.7;  // 91 % of a normal distribution
constexpr double kSharedVariance = 0.25;  // of the error's variance: the same for all runs of a sweep
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

// Of the candidates and then of the known runs, before anything is learned. Candidates share one group.
Belief prior(const std::vector<Candidate>& candidates, const std::vector<const KnownRun*>& known, double sigma,
             double shared) {
  const size_t n = candidates.size() + known.size();
  const auto setting = [&](size_t i) -> const Setting& {
    return i < candidates.size() ? candidates[i].setting : known[i - candidates.size()]->setting;
  };
  const auto group = [&](size_t i) { return i < candidates.size() ? 0 : 1 + known[i - candidates.size()]->group; };
  std::vector<double> covariance(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double alike = (1 - shared) * similarity(setting(i), setting(j)) + (group(i) == group(j) ? shared : 0);
      covariance[i * n + j] = covariance[j * n + i] = sigma * sigma * alike;
    }
  }
  return {std::vector<double>(n, 0.0), std::move(covariance)};
}

Belief time_belief(const std::vector<Candidate>& candidates, const std::vector<KnownRun>& known,
                   const TunerOptions& options) {
  std::vector<const KnownRun*> timed;
  for (const KnownRun& run : known) {
    if (run.log_time_error) timed.push_back(&run);
  }
  timed = most_alike(candidates, std::move(timed));
  Belief belief = prior(candidates, timed, options.relative_error_bar / kBarInDeviations, kSharedVariance);
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
  Belief belief = prior(candidates, judged, options.memory_relative_sigma, 0);
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

double Tuner::relative_deviation(size_t i) const { return time_.standard_deviation(i); }

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
  return fit_probability(i) * sd * (z * normal_probability(z) + normal_density(z));
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
    const double is_faster = normal_probability((bound - std::log(expected_seconds(i))) / sd);
    none_is_faster *= 1 - fit_probability(i) * is_faster;
  }
  return none_is_faster;
}

void Tuner::measured(size_t i, double step_seconds) {
  is_tried_[i] = true;
  time_.learn_value(i, std::log(step_seconds / candidates_[i].predicted_seconds), options_.noise);
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
