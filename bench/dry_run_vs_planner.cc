// The planner's bytes against the trainer's own, on random layouts of models from tiny to 70 billion parameters, on up
// to 4,096 ranks. Usage: dry_run_vs_planner [NUM_LAYOUTS] [SEED]. Prints, by term, how far the planner is off in
// percent of the stage's peak, and where most.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "layline/cost/step.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/search/explain.h"
#include "layline/spec/registry.h"
#include "layline/trainer/dryrun/dry_run.h"

namespace {

using namespace layline;
namespace dryrun = trainer::dryrun;

struct Trial {
  spec::Job job;
  layout::Layout layout;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  // A legal one.
  Trial next() {
    for (;;) {
      Trial trial = draw();
      if (layout::is_legal(trial.layout, trial.job)) return trial;
    }
  }

 private:
  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[random_() % values.size()];
  }

  Trial draw() {
    Trial trial;
    layout::Layout& l = trial.layout;
    spec::Job& job = trial.job;
    job.model = spec::get_model(one_of<std::string>({"llama-tiny", "llama-3.2-1b", "llama-3.2-3b", "llama-2-7b",
                                                     "llama-3-8b", "llama-2-13b", "llama-30b", "llama-2-70b"}));
    job.engine = spec::get_engine("layline");
    l.dp = one_of<int64_t>({1, 2, 4, 8, 32, 64});
    l.tp = one_of<int64_t>({1, 1, 2, 4, 8});
    l.pp = one_of<int64_t>({1, 1, 2, 4, 8});
    l.mb = one_of<int64_t>({1, 1, 2, 4});
    l.sp = l.tp > 1 && one_of<int>({0, 1}) == 1;
    l.zero = one_of<int>({0, 1, 1});
    l.checkpointing = one_of<layout::Checkpointing>({layout::Checkpointing::kNone, layout::Checkpointing::kNone,
                                                     layout::Checkpointing::kSelective, layout::Checkpointing::kFull});
    if (l.checkpointing == layout::Checkpointing::kFull) l.full_layers = one_of<int64_t>({0, 1, 2});
    if (l.pp > 1) {
      l.schedule = one_of<spec::ScheduleKind>({spec::ScheduleKind::kOneFOneB, spec::ScheduleKind::kOneFOneB,
                                               spec::ScheduleKind::kGpipe, spec::ScheduleKind::kZeroBubble,
                                               spec::ScheduleKind::kInterleaved});
      if (l.schedule == spec::ScheduleKind::kInterleaved) l.vp = 2;
    }
    l.attention =
        one_of<layout::AttentionKernel>({layout::AttentionKernel::kFlash2, layout::AttentionKernel::kFlash2,
                                         layout::AttentionKernel::kFlash2, layout::AttentionKernel::kUnfused});
    l.norm = one_of<layout::NormKernel>({layout::NormKernel::kFused, layout::NormKernel::kFused,
                                         layout::NormKernel::kFused, layout::NormKernel::kUnfused});
    job.num_gpus = l.world_size();
    job.cluster = spec::get_cluster("cpu");
    job.cluster.gpus_per_node = static_cast<int>(job.num_gpus);
    job.global_batch = l.dp * l.mb * one_of<int64_t>({1, 2, 8, 16, 32});
    job.sequence_length = one_of<int64_t>({512, 2048, 4096});
    job.precision = one_of<spec::Precision>(
        {spec::Precision::kBf16, spec::Precision::kBf16, spec::Precision::kBf16, spec::Precision::kFp32});
    return trial;
  }

  std::mt19937_64 random_;
};

trainer::loop::TrainingJob training_job(const Trial& trial) {
  trainer::loop::TrainingJob job;
  job.model = trial.job.model;
  job.layout = trial.layout;
  const memory::EndCosts ends = cost::Pricer(trial.job).end_costs(trial.layout);
  job.stages = layout::stages_of(trial.layout, job.model.num_layers, ends.embedding_layers, ends.head_layers);
  job.sequence_length = trial.job.sequence_length;
  job.global_batch = trial.job.global_batch;
  job.dtype = trial.job.precision == spec::Precision::kBf16 ? at::kBFloat16 : at::kFloat;
  job.steps = 2;
  return job;
}

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
    fmt::print("{:<16} {:>6} stages   median {:>6.2f} %   90th {:>6.2f} %   worst {:>+8.2f} % at {}\n", name,
               errors.size(), std::abs(errors[errors.size() / 2].percent),
               std::abs(errors[errors.size() * 9 / 10].percent), worst.percent, worst.where);
  }
};

std::string where(const Trial& trial, int64_t stage) {
  return fmt::format("{} S{} GB{} {} {} | stage {}", trial.job.model.name, trial.job.sequence_length,
                     trial.job.global_batch, trial.job.precision == spec::Precision::kBf16 ? "bf16" : "fp32",
                     layout::to_text(trial.layout, layout::text_defaults(trial.job.engine)), stage);
}

}  // namespace

int main(int argc, char** argv) {
  const int num_layouts = argc > 1 ? std::atoi(argv[1]) : 100;
  Generator generator(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::array<Column, dryrun::kNumNames + 1> columns;
  for (size_t name = 0; name < dryrun::kNumNames; ++name) columns[name].name = dryrun::name_of(name);
  columns.back().name = "total";
  for (int i = 0; i < num_layouts; ++i) {
    const Trial trial = generator.next();
    const dryrun::DryRun dry = dryrun::dry_run(training_job(trial));
    const search::Explanation planned = search::explain(trial.job, trial.layout);
    for (const dryrun::StageBytes& stage : dry.stages) {
      const memory::StageMemory& memory = planned.stages[static_cast<size_t>(stage.stage)].memory;
      const double peak = static_cast<double>(stage.peak_bytes);
      for (size_t name = 0; name < dryrun::kNumNames; ++name) {
        const double planned_bytes = memory.bytes[name];
        const double found = static_cast<double>(stage.bytes[name]);
        if (planned_bytes == 0 && found == 0) continue;
        columns[name].errors.push_back({100 * (planned_bytes - found) / peak, where(trial, stage.stage)});
      }
      columns.back().errors.push_back({100 * (memory.total() / peak - 1), where(trial, stage.stage)});
    }
  }
  for (Column& column : columns) column.print();
}
