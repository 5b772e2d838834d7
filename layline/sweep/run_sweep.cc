#include "layline/sweep/run_sweep.h"

#include <map>

#include "layline/sweep/recorder.h"

namespace layline::sweep {
namespace {

class Sweep {
 public:
  Sweep(const SweepSpec& spec, std::string output, const std::string& machine, Launcher& launcher,
        const SweepObserver& observer)
      : spec_(spec),
        output_(std::move(output)),
        origin_{spec.name, machine, fingerprint(spec.base)},
        launcher_(launcher),
        observer_(observer) {}

  SweepState run() {
    SweepPlan plan = plan_sweep(spec_);
    state_.num_illegal = plan.num_illegal;
    state_.num_planned = static_cast<int64_t>(plan.runs.size()) * spec_.repeats;
    Recorder recorder(output_, origin_, launcher_);
    take_existing(plan, recorder);
    // All layouts once before any of them twice, so that stopping early is useful.
    for (int64_t repeat = 1; repeat <= spec_.repeats; ++repeat) {
      for (const PlannedRun& planned : plan.runs) {
        if (num_done_[key_of(planned)] >= repeat) continue;
        if (!run_one(planned, recorder)) return std::move(state_);
      }
    }
    return std::move(state_);
  }

 private:
  void take_existing(const SweepPlan& plan, const Recorder& recorder) {
    std::map<std::string, const PlannedRun*> planned;
    for (const PlannedRun& run : plan.runs) planned[key_of(run)] = &run;
    for (const runs::RunRecord& record : recorder.existing()) {
      const auto found = planned.find(key_of(record));
      if (found != planned.end()) add(swept_of(*found->second, record, /*is_from_before=*/true));
    }
  }

  // False when the user wants to stop.
  bool run_one(const PlannedRun& planned, Recorder& recorder) {
    if (observer_.starting) observer_.starting(state_, planned);
    MeasureOptions options;
    options.time_limit_seconds = spec_.time_limit_seconds;
    const auto best = best_seconds_.find(planned.num_ranks);
    if (spec_.stop_when_slower_than_best_by && best != best_seconds_.end()) {
      options.hopeless_step_seconds = best->second * *spec_.stop_when_slower_than_best_by;
    }
    const std::optional<runs::RunRecord> record = recorder.run(spec_.base, planned, options);
    state_.interrupt_signal = recorder.interrupt_signal();
    if (!record) return false;
    add(swept_of(planned, *record, /*is_from_before=*/false));
    if (observer_.finished) observer_.finished(state_);
    return true;
  }

  void add(SweptRun swept) {
    ++num_done_[key_of(swept.planned)];
    if (swept.step_seconds) {
      const auto [best, is_first] = best_seconds_.emplace(swept.planned.num_ranks, *swept.step_seconds);
      best->second = std::min(best->second, *swept.step_seconds);
    }
    const bool is_best = swept.tokens_per_second &&
                         (!state_.best || *swept.tokens_per_second > *state_.done[*state_.best].tokens_per_second);
    if (is_best) state_.best = state_.done.size();
    state_.done.push_back(std::move(swept));
  }

  const SweepSpec& spec_;
  std::string output_;
  Origin origin_;
  Launcher& launcher_;
  const SweepObserver& observer_;
  SweepState state_;
  std::map<std::string, int64_t> num_done_;  // by key
  std::map<int64_t, double> best_seconds_;   // by number of ranks
};

}  // namespace

SweepState run_sweep(const SweepSpec& spec, const std::string& output, const std::string& machine, Launcher& launcher,
                     const SweepObserver& observer) {
  return Sweep(spec, output, machine, launcher, observer).run();
}

}  // namespace layline::sweep
