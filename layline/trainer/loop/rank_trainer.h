// One rank's training: the model's stages, the pipeline, the gradients' reduction and the optimizer, put together for a
// layout. Knows nothing of files, clocks or consoles: micro-batches come in, numbers go out.
//
//   RankTrainer trainer(job, factory);              // on every rank
//   trainer.initialize();                           // or load()
//   StepResult result = trainer.step(micro_batches_of_this_replica);
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/layout/stage_split.h"
#include "layline/spec/model.h"
#include "layline/trainer/comm/group_factory.h"
#include "layline/trainer/data/batch.h"
#include "layline/trainer/model/parameter.h"
#include "layline/trainer/optimizer/adamw.h"

namespace layline::trainer::loop {

// What all ranks agree on.
struct TrainingJob {
  spec::Model model;
  layout::Layout layout;              // legal
  std::vector<layout::Stage> stages;  // virtual stages in model order
  int64_t sequence_length = 0;        // tokens
  int64_t global_batch = 0;           // sequences
  at::ScalarType dtype = at::kFloat;  // of weights and activations: bf16 (with fp32 gradients and master weights),
                                      // fp32, fp64
  at::Device device = at::kCPU;       // kMeta: nothing is computed, all losses and norms are 0
  uint64_t seed = 1;
  int64_t steps = 0;  // in all, for the learning rate
  optimizer::OptimizerOptions optimizer;

  int64_t num_micro_batches() const { return global_batch / (layout.dp * layout.mb); }  // of each replica
};

struct StepResult {
  double loss = 0;       // mean over the unmasked tokens of the global batch, before the update
  double grad_norm = 0;  // before clipping
  double learning_rate = 0;
};

class RankTrainer {
 public:
  // Makes its groups from the factory: every rank of the world calls this at the same time.
  // Throws base::InputError for models that the trainer does not train.
  RankTrainer(const TrainingJob& job, comm::GroupFactory& factory);
  ~RankTrainer();

  // Weights from (seed, name): the same in every layout.
  void initialize();
  // Weights from elsewhere: `fill` writes each parameter's value.
  void set_weights(const std::function<void(model::Parameter&)>& fill);

  // One step on the micro-batches of this rank's data-parallel replica, num_micro_batches() of them, tokens and targets
  // [mb, S]. Throws base::RunError when the loss or a gradient is not finite (step, rank, parameter), comm::CommError
  // when ranks are lost.
  StepResult step(const std::vector<data::MicroBatch>& micro_batches);

  // The mean loss of the micro-batches of all replicas, without training.
  double evaluate(const std::vector<data::MicroBatch>& micro_batches);

  // Of a model that is on one pipeline rank (pp 1): [B, S, V of this tp rank, with padding], for tokens_BS of B = mb.
  at::Tensor logits(const at::Tensor& tokens_BS);

  // The summed gradients of the last step before clipping that this rank has: of each part of a parameter from element
  // `offset` of its flat local weight on.
  void for_each_gradient(
      const std::function<void(const model::Parameter&, int64_t offset, const at::Tensor&)>& visit) const;

  // What the optimizer keeps on this rank, which may be written.
  void for_each_state(const std::function<void(const optimizer::OptimizerState&)>& visit) const;
  // After it was: weights follow from it on all ranks, and the next step is steps_done + 1. Every rank calls it.
  void state_changed(int64_t steps_done);

  int64_t num_steps_done() const;
  int64_t dp_rank() const;
  int64_t tp_rank() const;
  int64_t pp_rank() const;
  // All of this rank, in the order of its stages.
  std::vector<const model::Parameter*> parameters() const;
  comm::Group& world();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace layline::trainer::loop
