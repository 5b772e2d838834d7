// AdamW over a rank's share of the weights: with ZeRO-1 (Rajbhandari et al. 2020) each data-parallel replica keeps and
// updates 1/dp of every bucket and gathers the rest, with ZeRO-0 all of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/optimizer/flat_buffers.h"
#include "layline/trainer/optimizer/gradient_reducer.h"
#include "layline/trainer/optimizer/learning_rate.h"

namespace layline::trainer::optimizer {

struct UpdateStep {
  int64_t step = 1;  // from 1
  double learning_rate = 0;
  double gradient_scale = 1;  // the clip factor
};

class ShardedAdamW {
 public:
  // Buffers, dp and the options' values are kept. bf16 weights get an fp32 master copy; others are their own.
  ShardedAdamW(FlatBuffers& buffers, comm::Group& dp, int zero, const OptimizerOptions& options);

  // After somebody wrote the weights: takes the master copy from them.
  void weights_changed();

  // Updates this rank's share from the reduced gradients and gathers the others' shares.
  void step(const GradientReducer& reducer, const UpdateStep& update);

  // What this rank keeps, part of a parameter by part: for checkpoints.
  struct State {
    model::Parameter* parameter = nullptr;
    int64_t offset = 0;  // element of the flat local parameter
    at::Tensor master, exp_avg, exp_avg_sq;
  };
  void for_each_state(const std::function<void(const State&)>& visit) const;

 private:
  // Neighbours in a share that are treated alike: one kernel call.
  struct Run {
    int64_t first = 0, length = 0;  // of the share
    bool decays = false;
  };
  struct Share {
    at::Tensor weights;  // a view of the bucket
    at::Tensor master, exp_avg, exp_avg_sq;
    int64_t offset = 0;  // in the bucket
    std::vector<Run> runs;
  };
  void update(const Share& share, const at::Tensor& gradients, const UpdateStep& step) const;

  FlatBuffers& buffers_;
  comm::Group& dp_;
  bool is_sharded_;
  OptimizerOptions options_;
  std::vector<Share> shares_;  // a bucket
};

}  // namespace layline::trainer::optimizer
