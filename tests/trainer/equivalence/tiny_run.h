// A training run small enough to be repeated under hundreds of layouts: a tiny Llama in fp64 for a few steps on made-up
// tokens with ragged loss masks, ranks as threads.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"
#include "layline/trainer/comm/group_factory.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer {

// What is trained; the layout says how.
struct TinyCase {
  int64_t num_layers = 4;
  int64_t num_kv_heads = 4;
  bool tied = false;
  int64_t vocab = 97;
  int64_t global_batch = 12;
  int64_t steps = 3;
  double clip = 1.0;
  at::ScalarType dtype = at::kDouble;

  auto operator<=>(const TinyCase&) const = default;
};

spec::Model tiny_model(const TinyCase& tiny);
// With the engine layline, for the rules of legality.
spec::Job tiny_job(const TinyCase& tiny, int64_t num_ranks);
loop::TrainingJob training_job(const TinyCase& tiny, const layout::Layout& layout);

// The micro-batches of a replica at a step (from 1). Samples depend on (step, index in the global batch) only; each
// masks another number of its targets, one of them all.
std::vector<data::MicroBatch> micro_batches(const TinyCase& tiny, const layout::Layout& layout, int64_t dp_rank,
                                            int64_t step);

// Of each step: the numbers, every gradient before clipping, every weight after the update, by global name, whole.
struct StepRecord {
  double loss = 0, grad_norm = 0;
  std::map<std::string, at::Tensor> gradients, weights;
};
using RunRecord = std::vector<StepRecord>;

// The run on one rank without any parallelism, all samples in one micro-batch.
RunRecord reference_run(const TinyCase& tiny);

// Steps first_step to last_step of one rank. Compares as compare_rank does.
std::string compare_steps(loop::RankTrainer& trainer, const TinyCase& tiny, const layout::Layout& layout,
                          const RunRecord& reference, int64_t first_step, int64_t last_step, double tolerance,
                          int64_t rank);

// One rank's part of the run under a layout. Compares as it goes and returns what differs by more than `tolerance`
// times the tensor's largest entry, a line each ("" when nothing does).
std::string compare_rank(const TinyCase& tiny, const layout::Layout& layout, const RunRecord& reference,
                         double tolerance, comm::GroupFactory& factory);

// The whole run under a layout, ranks as threads.
std::string compare_run(const TinyCase& tiny, const layout::Layout& layout, const RunRecord& reference,
                        double tolerance = 1e-10);

}  // namespace layline::trainer
