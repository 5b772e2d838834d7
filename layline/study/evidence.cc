#include "layline/study/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "layline/calibrate/run_job.h"
#include "layline/calibrate/score.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/spec/registry.h"
#include "layline/study/tolerance.h"

namespace layline::study {
namespace {

std::optional<double> median_gain_of(const std::vector<Pair>& pairs) {
  if (pairs.empty()) return std::nullopt;
  std::vector<double> gains;
  for (const Pair& pair : pairs) gains.push_back(pair.gain);
  return calibrate::median(std::move(gains));
}

// All runs of one layout in a sweep.
struct Repeats {
  layout::Layout layout;
  std::string text;
  std::string attention, norm;  // as the records call the kernels
  std::vector<double> seconds;  // of those that ran
  bool ran_out_of_memory = false;

  bool ran() const { return !seconds.empty(); }
};

struct Sweep {
  std::string name;
  std::shared_ptr<spec::Job> job;
  std::map<std::string, Repeats> layouts;  // by text and kernels
};

// What of a layout is known once its repeats are summed up.
struct Known {
  const Repeats* repeats;
  double seconds = 0;  // 0: out of memory
};

bool is_usable(const runs::RunRecord& record) {
  if (record.scored && !*record.scored) return false;
  if (record.status == runs::RunStatus::kOom) return true;
  return record.status == runs::RunStatus::kOk && runs::step_seconds(record).has_value();
}

std::string sweep_key(const runs::RunRecord& record, const spec::Job& job) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}", runs::sweep_name(record), record.source, spec::measured_job_key(job),
                     job.engine.name, job.cluster.name, job.cluster.gpus_per_node, job.cluster.gpu.memory_bytes);
}

void add(const runs::RunRecord& record, calibrate::RunJob run, std::map<std::string, Sweep>& sweeps) {
  Sweep& sweep = sweeps[sweep_key(record, run.job)];
  if (!sweep.job) {
    sweep.name = runs::sweep_name(record);
    run.job.calibration = spec::default_calibration(run.job.engine, run.job.cluster);
    sweep.job = std::make_shared<spec::Job>(std::move(run.job));
  }
  std::string text = layout::to_text(run.layout, layout::text_defaults(sweep.job->engine));
  const std::string key = fmt::format("{}|{}|{}", text, record.attention_kernel, record.norm_kernel);
  Repeats& repeats = sweep.layouts[key];
  repeats.layout = run.layout;
  repeats.text = std::move(text);
  repeats.attention = record.attention_kernel;
  repeats.norm = record.norm_kernel;
  if (record.status == runs::RunStatus::kOk) {
    repeats.seconds.push_back(*runs::step_seconds(record));
  } else {
    repeats.ran_out_of_memory = true;
  }
}

bool speaks_of(const Rule& rule, Axis axis) {
  return std::find(rule.axes.begin(), rule.axes.end(), axis) != rule.axes.end();
}

// Records may tell kernels apart that layouts do not; only a rule about them may compare across.
std::string kernels_key(const Rule& rule, const Repeats& repeats) {
  return fmt::format("{}|{}", speaks_of(rule, Axis::kAttention) ? "" : repeats.attention,
                     speaks_of(rule, Axis::kNorm) ? "" : repeats.norm);
}

std::string group_key(const Rule& rule, const Repeats& repeats) {
  return fmt::format("{}|{}", text_without(rule.axes, repeats.layout), kernels_key(rule, repeats));
}

Pair pair_of(const Sweep& sweep, const Known& follows, const Known& breaks) {
  return {sweep.name,
          {follows.repeats->layout, follows.repeats->text, follows.seconds},
          {breaks.repeats->layout, breaks.repeats->text, breaks.seconds},
          breaks.seconds / follows.seconds - 1};
}

Surroundings surroundings_of(const Sweep& sweep, const std::vector<Known>& known) {
  Surroundings around;
  around.gpus_per_node = sweep.job->cluster.gpus_per_node;
  int64_t least = 0, least_of_all = 0;
  for (const Known& run : known) {
    if (run.seconds <= 0) continue;
    const int64_t parallel = run.repeats->layout.tp * run.repeats->layout.pp;
    if (least_of_all == 0 || parallel < least_of_all) least_of_all = parallel;
    if (run.repeats->layout.checkpointing != layout::Checkpointing::kNone) continue;
    if (least == 0 || parallel < least) least = parallel;
  }
  around.least_model_parallel = std::max<int64_t>(1, least > 0 ? least : least_of_all);
  return around;
}

void add_pairs(const Rule& rule, const Sweep& sweep, const std::vector<Known>& known, const Surroundings& around,
               Evidence& evidence) {
  std::map<std::string, std::vector<const Known*>> groups;
  for (const Known& run : known) groups[group_key(rule, *run.repeats)].push_back(&run);
  for (const auto& [key, group] : groups) {
    for (const Known* follows : group) {
      for (const Known* breaks : group) {
        const layout::Layout &a = follows->repeats->layout, &b = breaks->repeats->layout;
        if (follows == breaks || !rule.is_pair(a, b, around) || !differ_only_in(rule.axes, a, b)) continue;
        const bool ran = follows->seconds > 0, other_ran = breaks->seconds > 0;
        if (ran && other_ran) evidence.pairs.push_back(pair_of(sweep, *follows, *breaks));
        if (ran && !other_ran) ++evidence.num_only_follows_fits;
        if (!ran && other_ran) ++evidence.num_only_breaks_fits;
      }
    }
  }
}

const Known* faster(const Known* best, const Known& run) {
  return run.seconds > 0 && (best == nullptr || run.seconds < best->seconds) ? &run : best;
}

void add_best(const Rule& rule, const Sweep& sweep, const std::vector<Known>& known, const Surroundings& around,
              Evidence& evidence) {
  struct Sides {
    const Known *follows = nullptr, *breaks = nullptr;
  };
  std::map<std::string, Sides> by_kernels;
  for (const Known& run : known) {
    Sides& sides = by_kernels[kernels_key(rule, *run.repeats)];
    const Side side = rule.side(run.repeats->layout, around);
    if (side == Side::kFollows) sides.follows = faster(sides.follows, run);
    if (side == Side::kBreaks) sides.breaks = faster(sides.breaks, run);
  }
  // Of the kernels that ran on both sides those of the fastest run.
  const Sides* best = nullptr;
  const auto seconds = [](const Sides& sides) { return std::min(sides.follows->seconds, sides.breaks->seconds); };
  for (const auto& [key, sides] : by_kernels) {
    if (sides.follows == nullptr || sides.breaks == nullptr) continue;
    if (best == nullptr || seconds(sides) < seconds(*best)) best = &sides;
  }
  if (best != nullptr) evidence.best.push_back(pair_of(sweep, *best->follows, *best->breaks));
}

void add_prescribed(const Rule& rule, const Sweep& sweep, const std::vector<Known>& known, Evidence& evidence) {
  const Known* best = nullptr;
  for (const Known& run : known) best = faster(best, run);
  if (best == nullptr) return;
  cost::Pricer pricer(*sweep.job);
  for (const Prescription& prescription : rule.prescribe(*sweep.job, pricer)) {
    const Known *follows = nullptr, *others = nullptr;
    for (const Known& run : known) {
      const Known*& side = prescription.fix.matches(run.repeats->layout) ? follows : others;
      side = faster(side, run);
    }
    if (follows == nullptr) continue;
    if (others == nullptr) return;  // nothing to hold it against
    evidence.best.push_back(pair_of(sweep, *follows, *best));
    return;
  }
}

std::vector<Known> known_of(const Sweep& sweep) {
  std::vector<Known> known;
  for (const auto& [key, repeats] : sweep.layouts) {
    known.push_back({&repeats, repeats.ran() ? calibrate::median(repeats.seconds) : 0});
  }
  return known;
}

}  // namespace

int64_t Evidence::num_agreeing() const {
  return std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.gain > 0; });
}

std::optional<double> Evidence::median_gain() const { return median_gain_of(pairs); }

std::vector<Pair> Evidence::exceptions() const {
  std::vector<Pair> found;
  std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(found), [](const Pair& pair) { return pair.gain < 0; });
  std::stable_sort(found.begin(), found.end(), [](const Pair& a, const Pair& b) { return a.gain < b.gain; });
  return found;
}

int64_t Evidence::num_best_agreeing() const {
  const double least = rule->is_comparison() ? 0 : -kPrescriptionTolerance;
  return std::count_if(best.begin(), best.end(), [&](const Pair& pair) {
    return rule->is_comparison() ? pair.gain > least : pair.gain >= least;
  });
}

std::optional<double> Evidence::median_best_gain() const { return median_gain_of(best); }

EvidenceSummary evidence_from_runs(const std::vector<runs::RunTable>& tables, const EvidenceOptions& options) {
  EvidenceSummary summary;
  std::map<std::string, Sweep> sweeps;
  for (const runs::RunTable& table : tables) {
    for (const runs::RunRecord& record : table.records) {
      calibrate::RunJobOrReason run;
      if (is_usable(record)) run = calibrate::job_of(record, options.engine);
      const bool is_known = run.run && layout::is_legal(run.run->layout, run.run->job);
      ++(is_known ? summary.num_runs : summary.num_unused);
      if (is_known) add(record, std::move(*run.run), sweeps);
    }
  }
  summary.num_sweeps = static_cast<int64_t>(sweeps.size());
  for (const Rule& rule : rules()) summary.rules.emplace_back().rule = &rule;
  for (const auto& [key, sweep] : sweeps) {
    const std::vector<Known> known = known_of(sweep);
    const Surroundings around = surroundings_of(sweep, known);
    for (Evidence& evidence : summary.rules) {
      const Rule& rule = *evidence.rule;
      if (!rule.why_not(*sweep.job).empty()) continue;
      if (rule.is_comparison()) {
        add_pairs(rule, sweep, known, around, evidence);
        add_best(rule, sweep, known, around, evidence);
      } else {
        add_prescribed(rule, sweep, known, evidence);
      }
    }
  }
  return summary;
}

}  // namespace layline::study
