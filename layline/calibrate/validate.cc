#include "layline/calibrate/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "layline/base/error.h"
#include "layline/base/units.h"
#include "layline/calibrate/entry.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::calibrate {
namespace {

// Nine of ten left-out times lie within the bar that is printed.
constexpr double kBarShare = 0.91;

// Predictions of all entries of `members` with one set of coefficients.
void predict_all(const std::vector<size_t>& members, const std::vector<Entry>& entries, const Fit& fit,
                 double error_bar, std::vector<ValidatedRun>& runs) {
  std::map<const spec::Job*, std::vector<size_t>> by_job;
  for (const size_t i : members) by_job[entries[i].job.get()].push_back(i);
  for (const auto& [job, indices] : by_job) {
    auto with_sigma = std::make_shared<spec::Job>(*job);
    with_sigma->calibration.memory_relative_sigma = fit.memory_relative_sigma;
    cost::Pricer pricer(with_sigma, fit.coefficients);
    for (const size_t i : indices) {
      runs[i].prediction = predict(pricer, entries[i].layout, memory_kind_of(*entries[i].record), error_bar);
    }
  }
}

// Left-out predictions of one calibration's entries; returns the relative errors of the timed ones.
struct LeftOut {
  std::vector<double> errors;
  std::map<std::string, std::vector<double>> by_group;
};

using Progress = std::function<void()>;

LeftOut predict_left_out(const std::vector<size_t>& members, const std::vector<Entry>& entries, LeaveOut leave_out,
                         std::vector<ValidatedRun>& runs, const Progress& progress, bool may_use_shipped) {
  std::map<std::string, std::vector<size_t>> groups;
  for (const size_t i : members) groups[group_of(entries[i], leave_out)].push_back(i);
  LeftOut left_out;
  for (const auto& [name, left] : groups) {
    if (const auto unseen = may_use_shipped ? shipped_without(left, entries, leave_out) : std::nullopt) {
      predict_all(left, entries, fit_of(*unseen), unseen->relative_error_bar, runs);
      if (progress) progress();
      continue;
    }
    std::vector<Observation> others;
    for (const size_t i : members) {
      if (group_of(entries[i], leave_out) != name && learns_from(entries[i])) {
        others.push_back(observation_of(entries[i], group_of(entries[i], leave_out)));
      }
    }
    const Fit refit = fit(others, Fit{}, FitOptions{});
    predict_all(left, entries, refit, 0, runs);
    if (progress) progress();
    for (const size_t i : left) {
      const Observation run = observation_of(entries[i], name);
      if (!learns_from(entries[i]) || run.seconds <= 0) continue;
      const double error = std::abs(run.seconds / runs[i].prediction.step_seconds - 1);
      left_out.errors.push_back(error);
      left_out.by_group[name].push_back(std::abs(runs[i].prediction.step_seconds / run.seconds - 1));
    }
  }
  const double bar = left_out.errors.empty() ? 0.5 : quantile(left_out.errors, kBarShare);
  for (const size_t i : members) {
    if (runs[i].prediction.relative_error_bar == 0) runs[i].prediction.relative_error_bar = bar;
  }
  return left_out;
}

ScoredRun scored_of(const ValidatedRun& run) {
  const runs::RunRecord& r = *run.record;
  ScoredRun scored;
  scored.sweep = run.sweep;
  scored.ran_ok = r.status == runs::RunStatus::kOk;
  scored.ran_out_of_memory = r.status == runs::RunStatus::kOom;
  scored.real_seconds = runs::step_seconds(r);
  scored.predicted_seconds = run.prediction.step_seconds;
  scored.relative_error_bar = run.prediction.relative_error_bar;
  if (r.peak_memory_GiB) scored.real_memory_bytes = *r.peak_memory_GiB * base::kGib;
  switch (memory_rank_of(r)) {
    case MemoryRank::kFirst:
      scored.predicted_memory_bytes = run.prediction.first_stage_bytes;
      break;
    case MemoryRank::kLast:
      scored.predicted_memory_bytes = run.prediction.last_stage_bytes;
      break;
    case MemoryRank::kMax:
      scored.predicted_memory_bytes = run.prediction.max_bytes;
  }
  scored.verdict = run.prediction.verdict;
  scored.fit_probability = run.prediction.fit_probability;
  return scored;
}

void score(Validation& validation) {
  std::vector<ScoredRun> scored;
  std::map<std::string, std::vector<ScoredRun>> by_sweep;
  std::map<std::string, int64_t> unscored;
  for (const ValidatedRun& run : validation.runs) {
    if (run.scored) {
      scored.push_back(scored_of(run));
      by_sweep[run.sweep].push_back(scored.back());
    } else {
      ++unscored[run.sweep];
    }
  }
  validation.overall = score_overall(scored);
  validation.overall.num_runs = static_cast<int64_t>(validation.runs.size());
  validation.overall.num_unscored = static_cast<int64_t>(validation.runs.size() - scored.size());
  for (const ValidatedRun& run : validation.runs) by_sweep[run.sweep];
  for (const auto& [name, members] : by_sweep) {
    std::vector<const ScoredRun*> pointers;
    for (const ScoredRun& run : members) pointers.push_back(&run);
    Scores scores = score_sweep(pointers);
    scores.num_unscored = unscored[name];
    scores.num_runs += scores.num_unscored;
    validation.sweeps[name] = scores;
  }
}

std::map<std::string, std::vector<size_t>> by_calibration(const std::vector<Entry>& entries) {
  std::map<std::string, std::vector<size_t>> keys;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].priced) keys[entries[i].key].push_back(i);
  }
  return keys;
}

spec::Calibration calibration_for(const std::string& name, const spec::Job& job) {
  return name.empty() ? spec::default_calibration(job.engine, job.cluster) : spec::get_calibration(name);
}

// The median time of every layout that ran, job by job.
std::vector<spec::MeasuredJob> measured_jobs(const std::vector<size_t>& members, const std::vector<Entry>& entries) {
  std::map<std::string, std::map<std::string, std::vector<double>>> jobs;
  for (const size_t i : members) {
    const Observation run = observation_of(entries[i], "");
    if (run.seconds <= 0) continue;
    const std::string text = layout::to_text(entries[i].layout, layout::text_defaults(entries[i].job->engine));
    jobs[spec::measured_job_key(*entries[i].job)][text].push_back(run.seconds);
  }
  std::vector<spec::MeasuredJob> measured;
  for (const auto& [job, layouts] : jobs) {
    measured.push_back({job, {}});
    for (const auto& [text, seconds] : layouts) measured.back().step_seconds[text] = median(seconds);
  }
  return measured;
}

}  // namespace

Validation validate(const std::vector<runs::RunTable>& tables, const ValidateOptions& options) {
  const std::vector<Entry> entries = entries_of(tables, {.engine = options.engine, .cluster = options.cluster});
  Validation validation;
  for (const Entry& entry : entries) {
    ValidatedRun run;
    run.record = entry.record;
    run.sweep = entry.sweep;
    run.scored = entry.job && score_reason(*entry.record).empty();  // an illegal verdict on a real run counts too
    run.reason = entry.reason;
    if (!entry.priced) run.prediction.reason = entry.reason;
    validation.runs.push_back(std::move(run));
  }
  const auto keys = by_calibration(entries);
  size_t done = 0, total = 0;
  for (const auto& [key, members] : keys) {
    std::set<std::string> groups;
    for (const size_t i : members) groups.insert(group_of(entries[i], options.leave_out));
    total += groups.size();
  }
  const auto step = [&] {
    ++done;
    if (options.progress) options.progress(done, total);
  };
  for (const auto& [key, members] : keys) {
    if (options.leave_out == LeaveOut::kNone) {
      const spec::Calibration calibration = calibration_for(options.calibration, *entries[members.front()].job);
      predict_all(members, entries, fit_of(calibration), calibration.relative_error_bar, validation.runs);
    } else {
      predict_left_out(members, entries, options.leave_out, validation.runs, step, true);
    }
  }
  score(validation);
  return validation;
}

spec::Calibration calibrate(const std::vector<runs::RunTable>& tables, const CalibrateOptions& options) {
  const std::vector<Entry> entries = entries_of(tables, {.default_engine = options.engine, .cluster = options.cluster});
  const std::string engine = spec::get_engine(options.engine).name;
  std::string family = options.gpu.empty() ? "" : spec::get_gpu(options.gpu).family;
  std::vector<size_t> members;
  std::vector<Observation> observations;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (!learns_from(entries[i]) || entries[i].job->engine.name != engine) continue;
    if (family.empty()) family = entries[i].job->cluster.gpu.family;
    if (entries[i].job->cluster.gpu.family != family) continue;
    members.push_back(i);
    observations.push_back(observation_of(entries[i], group_of(entries[i], options.leave_out)));
  }
  if (observations.empty()) {
    throw base::InputError("calibrate",
                           fmt::format("no run of engine \"{}\" in the tables can be learned from", engine));
  }
  spec::Calibration calibration;
  const spec::Job& job = *entries[members.front()].job;
  calibration.engine = job.engine.name;
  calibration.gpu = job.cluster.gpu.name;
  calibration.name = calibration.engine + "-" + job.cluster.gpu.family;
  std::vector<ValidatedRun> runs(entries.size());
  size_t done = 0;
  std::set<std::string> groups;
  for (const Observation& run : observations) groups.insert(run.group);
  const auto step = [&] {
    if (options.progress) options.progress(++done, groups.size() + 1);
  };
  const LeftOut left_out = predict_left_out(members, entries, options.leave_out, runs, step, false);
  const Fit all = fit(observations, Fit{}, FitOptions{});
  calibration.values = changed_values(all.coefficients);
  calibration.memory_relative_sigma = all.memory_relative_sigma;
  calibration.relative_error_bar = left_out.errors.empty() ? 0.5 : quantile(left_out.errors, kBarShare);
  predict_all(members, entries, all, calibration.relative_error_bar, runs);
  std::vector<double> errors;
  for (const size_t i : members) {
    const Observation run = observation_of(entries[i], "");
    if (run.judged) ++calibration.num_verdict_runs;
    if (run.seconds <= 0) continue;
    ++calibration.num_timed_runs;
    errors.push_back(std::abs(runs[i].prediction.step_seconds / run.seconds - 1));
  }
  if (!errors.empty()) {
    double sum = 0;
    for (const double error : errors) sum += error;
    calibration.mean_abs_relative_error = sum / static_cast<double>(errors.size());
    calibration.median_abs_relative_error = median(errors);
  }
  for (const auto& [name, group_errors] : left_out.by_group) {
    double sum = 0;
    for (const double error : group_errors) sum += error;
    calibration.left_out.push_back({name, static_cast<int64_t>(group_errors.size()),
                                    sum / static_cast<double>(group_errors.size()), median(group_errors)});
  }
  calibration.measured = measured_jobs(members, entries);
  for (const runs::RunTable& table : tables) calibration.sources.push_back(table.file);
  return calibration;
}

}  // namespace layline::calibrate
