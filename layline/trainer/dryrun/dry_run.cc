#include "layline/trainer/dryrun/dry_run.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "layline/layout/rank_map.h"
#include "layline/schedule/schedule.h"
#include "layline/trainer/comm/fake_group.h"
#include "layline/trainer/dryrun/meta_memory.h"
#include "layline/trainer/dryrun/products.h"

namespace layline::trainer::dryrun {

namespace {

using memory::Term;
using tally::Owner;
using tally::Phase;

// Tokens and targets, as a step reads them.
std::vector<data::MicroBatch> empty_micro_batches(const loop::TrainingJob& job, int64_t count) {
  const tally::OwnerScope owner(Owner::kBuffers);
  std::vector<data::MicroBatch> batches;
  const at::TensorOptions options = at::TensorOptions(at::kLong).device(at::kMeta);
  for (int64_t i = 0; i < count; ++i) {
    batches.push_back({at::empty({job.layout.mb, job.sequence_length}, options),
                       at::empty({job.layout.mb, job.sequence_length}, options)});
  }
  return batches;
}

bool is_of_instruction(Phase phase) { return phase != Phase::kSetUp && phase < Phase::kReduction; }

// Under which name an allocation that was live at the peak is counted.
size_t name_of(const Allocation& allocation, const MetaMemory& memory) {
  const auto index = [](Term term) { return static_cast<size_t>(term); };
  switch (allocation.owner) {
    case Owner::kWeights:
      return index(Term::kWeights);
    case Owner::kGradients:
      return index(Term::kGradients);
    case Owner::kOptimizer:
      return index(Term::kOptimizer);
    case Owner::kLogits:
      return index(Term::kLogits);
    case Owner::kCommunication:
      return index(Term::kCommunication);
    case Owner::kBuffers:
      return index(Term::kBuffers);
    case Owner::kNone:
      break;
  }
  const Phase born = allocation.born.phase;
  if (!is_of_instruction(born)) return index(born == Phase::kSetUp ? Term::kTransient : Term::kOptimizerStep);
  if (born == Phase::kReceiveBackward) return index(Term::kPipeline);
  const bool is_freed = allocation.freed_event != 0;
  const bool is_sent = allocation.freed.phase == Phase::kSendForward || allocation.freed.phase == Phase::kSendBackward;
  if (is_freed && is_sent) return index(Term::kPipeline);
  // An input that has come belongs to the first layer that keeps it.
  if (born == Phase::kReceiveForward && !memory.was_used_by_peak(allocation)) return index(Term::kPipeline);
  const bool is_kept = !is_freed || !(allocation.freed == allocation.born);
  return index(is_kept ? Term::kActivations : Term::kTransient);
}

class Runner {
 public:
  explicit Runner(const loop::TrainingJob& job) : job_(job), map_(job.layout) {
    job_.device = at::kMeta;
    const int64_t num = job.num_micro_batches();
    const int64_t run = sufficient_micro_batches(job.layout, num);
    num_left_out_ = num - run;
    job_.global_batch = run * job.layout.dp * job.layout.mb;
    schedule_ = schedule::make_schedule(job.layout, run);
  }

  int64_t num_micro_batches() const { return job_.num_micro_batches(); }

  bool are_alike(int64_t a, int64_t b) const {
    for (int64_t chunk = 0; chunk < job_.layout.vp; ++chunk) {
      const layout::Stage& x = part(a, chunk);
      const layout::Stage& y = part(b, chunk);
      if (x.num_layers != y.num_layers || x.has_embedding != y.has_embedding || x.has_head != y.has_head) return false;
    }
    return schedule_.ranks[static_cast<size_t>(a)] == schedule_.ranks[static_cast<size_t>(b)];
  }

  StageBytes run(int64_t stage) const {
    StageBytes result;
    result.stage = result.run_as = stage;
    result.rank = map_.rank({.pp = stage});
    for (int64_t chunk = 0; chunk < job_.layout.vp; ++chunk) result.num_layers += part(stage, chunk).num_layers;
    MetaMemory memory;
    {
      comm::FakeFactory factory(result.rank, job_.layout.world_size());
      loop::RankTrainer trainer(job_, factory);
      // Scratch memory has its size after the first.
      constexpr int kSteps = 2;
      for (int i = 0; i < kSteps; ++i) {
        const std::vector<data::MicroBatch> left_out = empty_micro_batches(job_, num_left_out_);
        trainer.step(empty_micro_batches(job_, num_micro_batches()));
      }
    }
    result.peak_bytes = memory.peak_bytes();
    result.peak_moment = memory.peak_moment();
    result.peak_bytes_by_phase = memory.peak_bytes_by_phase();
    for (const Allocation& allocation : memory.at_peak()) result.bytes[name_of(allocation, memory)] += allocation.bytes;
    return result;
  }

 private:
  const layout::Stage& part(int64_t stage, int64_t chunk) const {
    return job_.stages[static_cast<size_t>(chunk * job_.layout.pp + stage)];
  }

  loop::TrainingJob job_;
  layout::RankMap map_;
  int64_t num_left_out_ = 0;
  schedule::Schedule schedule_;
};

}  // namespace

std::string_view name_of(size_t index) { return memory::kTermNames[index]; }

int64_t DryRun::peak_bytes() const {
  return std::ranges::max(stages, {}, [](const StageBytes& stage) { return stage.peak_bytes; }).peak_bytes;
}

int64_t sufficient_micro_batches(const layout::Layout& layout, int64_t num) {
  if (layout.schedule == spec::ScheduleKind::kGpipe) return num;
  // A multiple of pp where the number is one: interleaved groups are cut by it.
  constexpr int64_t kRounds = 2;
  if (layout.pp == 1) return std::min(num, kRounds);
  if (num % layout.pp == 0) return std::min(num, kRounds * layout.pp);
  return layout.schedule == spec::ScheduleKind::kInterleaved ? num : std::min(num, kRounds * layout.pp);
}

std::string describe(tally::Moment moment, int64_t num_chunks) {
  std::string text(tally::kPhaseNames[static_cast<size_t>(moment.phase)]);
  std::ranges::replace(text, '_', ' ');
  if (!is_of_instruction(moment.phase)) return text;
  text += fmt::format(" of micro-batch {}", moment.micro_batch);
  return num_chunks > 1 ? text + fmt::format(", chunk {}", moment.chunk) : text;
}

DryRun dry_run(const loop::TrainingJob& job) {
  take_scratch_in_products();
  const Runner runner(job);
  DryRun result;
  result.num_micro_batches = job.num_micro_batches();
  result.num_micro_batches_run = runner.num_micro_batches();
  for (int64_t stage = 0; stage < job.layout.pp; ++stage) {
    const auto like = std::ranges::find_if(result.stages, [&](const StageBytes& other) {
      return other.run_as == other.stage && runner.are_alike(other.stage, stage);
    });
    if (like == result.stages.end()) {
      result.stages.push_back(runner.run(stage));
      continue;
    }
    StageBytes same = *like;
    same.stage = stage;
    result.stages.push_back(same);
  }
  return result;
}

}  // namespace layline::trainer::dryrun
