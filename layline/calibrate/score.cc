#include "layline/calibrate/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace layline::calibrate {
namespace {

constexpr size_t kMinimumForSpearman = 5;

std::vector<double> average_ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) ranks[order[j]] = (static_cast<double>(i + end) - 1) / 2;
    i = end;
  }
  return ranks;
}

bool has_real_time(const ScoredRun& run) { return run.ran_ok && run.real_seconds.has_value(); }

// What is called illegal has no predicted time or bytes.
bool is_timed(const ScoredRun& run) { return has_real_time(run) && run.verdict != Verdict::kIllegal; }

void score_times(const std::vector<const ScoredRun*>& runs, Scores& scores) {
  std::vector<double> errors, ratios;
  double within = 0;
  for (const ScoredRun* run : runs) {
    if (!is_timed(*run)) continue;
    const double ratio = run->predicted_seconds / *run->real_seconds;
    ratios.push_back(ratio - 1);
    errors.push_back(std::abs(ratio - 1));
    if (std::abs(*run->real_seconds / run->predicted_seconds - 1) <= run->relative_error_bar) ++within;
  }
  scores.num_timed = static_cast<int64_t>(errors.size());
  if (errors.empty()) return;
  const double n = static_cast<double>(errors.size());
  scores.mean_abs_relative_error = std::accumulate(errors.begin(), errors.end(), 0.0) / n;
  scores.median_abs_relative_error = median(errors);
  scores.bias = median(ratios);
  scores.error_bar_coverage = within / n;
}

void score_verdicts(const std::vector<const ScoredRun*>& runs, Scores& scores) {
  double judged = 0, right = 0, brier = 0;
  for (const ScoredRun* run : runs) {
    if (!run->ran_ok && !run->ran_out_of_memory) continue;
    ++judged;
    const bool says_fits = run->verdict == Verdict::kFits;
    if (says_fits == run->ran_ok) ++right;
    if (says_fits && run->ran_out_of_memory) ++scores.false_fits;
    if (!says_fits && run->ran_ok) ++scores.false_alarms;
    const double miss = run->fit_probability - (run->ran_ok ? 1 : 0);
    brier += miss * miss;
  }
  if (judged == 0) return;
  scores.oom_accuracy = right / judged;
  scores.brier = brier / judged;
}

void score_memory(const std::vector<const ScoredRun*>& runs, Scores& scores) {
  std::vector<double> errors;
  for (const ScoredRun* run : runs) {
    if (run->ran_ok && run->real_memory_bytes && run->verdict != Verdict::kIllegal) {
      errors.push_back(std::abs(run->predicted_memory_bytes / *run->real_memory_bytes - 1));
    }
  }
  if (!errors.empty()) scores.memory_median_abs_relative_error = median(errors);
}

void score_order(const std::vector<const ScoredRun*>& runs, Scores& scores) {
  std::vector<double> predicted, real;
  for (const ScoredRun* run : runs) {
    if (!is_timed(*run)) continue;
    predicted.push_back(run->predicted_seconds);
    real.push_back(*run->real_seconds);
  }
  if (real.size() >= kMinimumForSpearman) scores.spearman = spearman(predicted, real);
}

// Rows predicted to fit in the order of predicted time: the first is the pick; the first that really ran is its regret.
void score_pick(const std::vector<const ScoredRun*>& runs, Scores& scores) {
  std::vector<const ScoredRun*> picks;
  double best = INFINITY;
  for (const ScoredRun* run : runs) {
    if (has_real_time(*run)) best = std::min(best, *run->real_seconds);
    if (run->verdict == Verdict::kFits && (is_timed(*run) || run->ran_out_of_memory)) picks.push_back(run);
  }
  std::stable_sort(picks.begin(), picks.end(),
                   [](const auto* a, const auto* b) { return a->predicted_seconds < b->predicted_seconds; });
  if (!picks.empty() && picks.front()->ran_out_of_memory) scores.first_pick_oom = 1;
  const auto ran = std::find_if(picks.begin(), picks.end(), [](const auto* run) { return is_timed(*run); });
  if (ran != picks.end()) scores.top1_regret = *(*ran)->real_seconds / best - 1;
  scores.top1_regret_max = scores.top1_regret;
}

template <typename Member>
std::optional<double> mean_over(const std::vector<Scores>& sweeps, Member member) {
  double sum = 0, count = 0;
  for (const Scores& sweep : sweeps) {
    if (const auto& value = sweep.*member) {
      sum += *value;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> x = average_ranks(a), y = average_ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

Scores score_sweep(const std::vector<const ScoredRun*>& runs) {
  Scores scores;
  scores.num_runs = static_cast<int64_t>(runs.size());
  score_times(runs, scores);
  score_verdicts(runs, scores);
  score_memory(runs, scores);
  score_order(runs, scores);
  score_pick(runs, scores);
  return scores;
}

Scores score_overall(const std::vector<ScoredRun>& runs) {
  std::vector<const ScoredRun*> all;
  std::map<std::string, std::vector<const ScoredRun*>> by_sweep;
  for (const ScoredRun& run : runs) {
    all.push_back(&run);
    by_sweep[run.sweep].push_back(&run);
  }
  std::vector<Scores> sweeps;
  for (const auto& [name, members] : by_sweep) sweeps.push_back(score_sweep(members));
  Scores scores = score_sweep(all);
  scores.spearman = mean_over(sweeps, &Scores::spearman);
  scores.top1_regret = mean_over(sweeps, &Scores::top1_regret);
  scores.top1_regret_max.reset();
  scores.first_pick_oom = 0;
  for (const Scores& sweep : sweeps) {
    scores.first_pick_oom += sweep.first_pick_oom;
    if (sweep.top1_regret) {
      scores.top1_regret_max = std::max(scores.top1_regret_max.value_or(0), *sweep.top1_regret);
    }
  }
  return scores;
}

}  // namespace layline::calibrate
