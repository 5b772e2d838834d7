// AdamW over a rank's share of the weights: with ZeRO-1 (Rajbhandari et al. 2020) each data-parallel replica keeps and
// updates 1/dp of every bucket and gathers the rest, with ZeRO-0 all of it. Moments are fp32 (fp64 in fp64 runs); bf16
// weights have an fp32 master copy, fp32 and fp64 weights are their own.
//
//   ShardedAdamW adamw(buffers, dp, zero, options);
//   … weights are drawn, or loaded …   adamw.weights_changed();
//   adamw.step(reducer, {step, rate, clip_factor(norm, options.clip)});
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/optimizer/flat_buffers.h"
#include "layline/trainer/optimizer/gradient_reducer.h"
#include "layline/trainer/optimizer/learning_rate.h"
#include "layline/trainer/optimizer/segments.h"

namespace layline::trainer::optimizer {

struct UpdateStep {
  int64_t step = 1;  // from 1
  double learning_rate = 0;
  double gradient_scale = 1;  // the clip factor
};

// What a rank keeps of a part of a parameter, as views that may be written: for checkpoints.
struct OptimizerState {
  model::Parameter* parameter = nullptr;
  int64_t offset = 0;  // element of the flat local parameter
  at::Tensor master, exp_avg, exp_avg_sq;
};

class ShardedAdamW {
 public:
  // Buffers and dp outlive it. Moments are zero.
  ShardedAdamW(FlatBuffers& buffers, comm::Group& dp, int zero, const OptimizerOptions& options);

  // After somebody wrote the weights of all replicas: takes the master copy from them.
  void weights_changed();

  // Updates this rank's share from the reduced gradients and, with ZeRO-1, gathers the others' shares: a bucket travels
  // while the next one is updated. Decay acts where Parameter::decays. Every rank of dp calls it.
  void step(const GradientReducer& reducer, const UpdateStep& update);

  // All that this rank keeps, the same parts in the same order every time.
  void for_each_state(const std::function<void(const OptimizerState&)>& visit) const;

  // After masters were written through for_each_state: rounds them into the weights and, with ZeRO-1, gathers the
  // others'. Every rank of dp calls it.
  void masters_changed();

 private:
  struct Share {
    at::Tensor weights;  // a view of the bucket
    at::Tensor master, exp_avg, exp_avg_sq;
    int64_t offset = 0;           // in the bucket
    std::vector<Run<bool>> runs;  // with and without decay: a kernel call each
    bool is_own_master() const { return master.is_same(weights); }
  };
  void update(const Share& share, const at::Tensor& gradients, const UpdateStep& step) const;
  void gather_after(const std::function<void(size_t)>& write_share);

  FlatBuffers& buffers_;
  comm::Group& dp_;
  bool is_sharded_;
  OptimizerOptions options_;
  std::vector<Share> shares_;  // a bucket
};

}  // namespace layline::trainer::optimizer
