// The planner's bytes against the trainer's own, on random layouts of models from tiny to 405 billion parameters, on up
// to 4,096 ranks. Usage: dry_run_vs_planner [NUM_LAYOUTS] [SEED] [FROM]. Prints, by term, how far the planner is off in
// percent of the stage's peak, and where most; then the stages that are off by more than 1 %. FROM: layouts before this
// one are drawn and not run.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "layline/search/explain.h"
#include "layline/trainer/dryrun/dry_run.h"
#include "tests/trainer/dryrun/random_trial.h"

namespace {

using namespace layline;
namespace dryrun = trainer::dryrun;

constexpr double kWanted = 1;  // percent

struct Error {
  double percent = 0;  // of the stage's peak
  std::string where;
};

// Of one term, or of all together.
struct Column {
  std::string name;
  std::vector<Error> errors;

  void print() {
    if (errors.empty()) return;
    std::ranges::sort(errors, {}, [](const Error& e) { return std::abs(e.percent); });
    const Error& worst = errors.back();
    fmt::print("{:<16} {:>6} stages   median {:>6.3f} %   90th {:>6.3f} %   worst {:>+8.3f} % at {}\n", name,
               errors.size(), std::abs(errors[errors.size() / 2].percent),
               std::abs(errors[errors.size() * 9 / 10].percent), worst.percent, worst.where);
  }
};

class Comparison {
 public:
  Comparison() {
    for (size_t name = 0; name < dryrun::kNumNames; ++name) terms_[name].name = dryrun::name_of(name);
    total_.name = "total";
  }

  void add(const dryrun::Trial& trial, int number) {
    const dryrun::DryRun dry = dryrun::dry_run(dryrun::training_job(trial));
    const search::Explanation planned = search::explain(trial.job, trial.layout);
    for (const dryrun::StageBytes& stage : dry.stages) {
      const auto& memory = planned.stages[static_cast<size_t>(stage.stage)].memory;
      add(stage, memory,
          fmt::format("{}: {} | stage {} {}", number, dryrun::to_text(trial), stage.stage,
                      dryrun::describe(stage.peak_moment, trial.layout.vp)));
    }
  }

  void print() {
    for (Column& column : terms_) column.print();
    total_.print();
    const auto num_off =
        std::ranges::count_if(total_.errors, [](const Error& e) { return std::abs(e.percent) > kWanted; });
    const auto num = static_cast<double>(total_.errors.size());
    fmt::print("within {} %: {} of {} stages ({:.3f} %)\n", kWanted,
               total_.errors.size() - static_cast<size_t>(num_off), total_.errors.size(),
               100 * (1 - static_cast<double>(num_off) / num));
    constexpr ptrdiff_t kMostShown = 40;
    for (auto e = total_.errors.rbegin(); e != total_.errors.rbegin() + std::min(num_off, kMostShown); ++e) {
      fmt::print("{:>+8.3f} % {}\n", e->percent, e->where);
    }
  }

 private:
  void add(const dryrun::StageBytes& stage, const memory::StageMemory& memory, const std::string& where) {
    const double peak = static_cast<double>(stage.peak_bytes);
    for (size_t name = 0; name < dryrun::kNumNames; ++name) {
      const double found = static_cast<double>(stage.bytes[name]);
      if (memory.bytes[name] == 0 && found == 0) continue;
      terms_[name].errors.push_back({100 * (memory.bytes[name] - found) / peak, where});
    }
    total_.errors.push_back({100 * (memory.total() / peak - 1), where});
  }

  std::array<Column, dryrun::kNumNames> terms_;
  Column total_;
};

}  // namespace

int main(int argc, char** argv) {
  const int num_layouts = argc > 1 ? std::atoi(argv[1]) : 100;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const int from = argc > 3 ? std::atoi(argv[3]) : 0;
  at::set_num_threads(1);  // a rank is one core
  dryrun::TrialGenerator generator(seed);
  Comparison comparison;
  for (int i = 0; i < from + num_layouts; ++i) {
    const dryrun::Trial trial = generator.next();
    if (i >= from) comparison.add(trial, i);
  }
  comparison.print();
}
