// A run without its cluster: the trainer's own step on the meta device, where tensors have sizes and no contents, with
// groups that move nothing. Gives the bytes of every pipeline stage of any layout of any number of ranks.
//
//   DryRun run = dry_run(job);
//   run.stages[0].peak_bytes   run.stages[0].bytes[memory::Term::kWeights]
//
// Of each stage the first rank (tp 0, dp 0) is run. Its stage's other ranks hold as much: vocabulary and buckets are
// padded so that all shares are the same. Of stages that execute the same instructions on the same layers only the
// first is run. Micro-batches beyond those after which a schedule repeats itself are left out, but for their tokens.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layline/memory/stage_memory.h"
#include "layline/trainer/loop/rank_trainer.h"
#include "layline/trainer/tally/tally.h"

namespace layline::trainer::dryrun {

// The planner's names.
inline constexpr size_t kNumNames = memory::kNumTerms;
std::string_view name_of(size_t index);

struct StageBytes {
  int64_t stage = 0;   // pipeline rank
  int64_t run_as = 0;  // the stage that was run in its place: itself, or one that is alike
  int64_t rank = 0;    // the world rank that was run
  int64_t num_layers = 0;
  int64_t peak_bytes = 0;
  tally::Moment peak_moment;
  std::array<int64_t, kNumNames> bytes{};  // at the peak, by name
  std::array<int64_t, tally::kNumPhases> peak_bytes_by_phase{};
};

struct DryRun {
  int64_t num_micro_batches = 0;  // of a step
  int64_t num_micro_batches_run = 0;
  std::vector<StageBytes> stages;  // all, in order

  int64_t peak_bytes() const;
};

// Steps of job.layout on meta tensors; job.device is not looked at. Throws base::InputError for models that the trainer
// does not train.
DryRun dry_run(const loop::TrainingJob& job);

// Micro-batches of `num` after which more do not change any rank's peak.
int64_t sufficient_micro_batches(const layout::Layout& layout, int64_t num);

// "backward of micro-batch 3", "forward of micro-batch 7, chunk 1", "update".
std::string describe(tally::Moment moment, int64_t num_chunks);

}  // namespace layline::trainer::dryrun
