// The step of a dry run with contents: the same trainer and the same groups that move nothing, on the CPU, where an
// allocator counts what is really taken.
#pragma once

#include <cstdint>
#include <string>

#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::dryrun {

struct Sizes {
  int64_t num_layers = 4;
  int64_t num_kv_heads = 4;
  bool tied = false;
  int64_t vocab = 500;
  int64_t hidden = 64;
  int64_t sequence_length = 64;
  int64_t global_batch = 16;
  at::ScalarType dtype = at::kBFloat16;
};

loop::TrainingJob job_of(const Sizes& sizes, const std::string& layout);

// Peak of the first rank of a stage in two steps of all micro-batches.
int64_t real_peak_bytes(const loop::TrainingJob& job, int64_t stage);

}  // namespace layline::trainer::dryrun
