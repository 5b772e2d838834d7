#include "layline/trainer/optimizer/adamw.h"

#include <ATen/ATen.h>

#include <cassert>
#include <memory>
#include <optional>
#include <utility>

#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/tally/tally.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::optimizer {

ShardedAdamW::ShardedAdamW(FlatBuffers& buffers, comm::Group& dp, int zero, const OptimizerOptions& options)
    : buffers_(buffers), dp_(dp), is_sharded_(zero == 1 && dp.size() > 1), options_(options) {
  assert(zero == 0 || zero == 1);
  const tally::OwnerScope owner(tally::Owner::kOptimizer);
  for (const Bucket& bucket : buffers.buckets()) {
    Share& share = shares_.emplace_back();
    const int64_t size = is_sharded_ ? bucket.size() / dp.size() : bucket.size();
    share.offset = is_sharded_ ? size * dp.rank() : 0;
    share.weights = bucket.weights.narrow(0, share.offset, size);
    share.master = share.weights;
    const at::TensorOptions wide = bucket.gradients.options();
    if (bucket.weights.scalar_type() != bucket.gradients.scalar_type()) share.master = at::zeros({size}, wide);
    share.exp_avg = at::zeros({size}, wide);
    share.exp_avg_sq = at::zeros({size}, wide);
    for_each_run(
        bucket, share.offset, size, [](const model::Parameter& parameter) { return parameter.decays; },
        [&share](const Run<bool>& run) { share.runs.push_back(run); });
  }
  weights_changed();
}

void ShardedAdamW::weights_changed() {
  for (Share& share : shares_) {
    if (!share.is_own_master()) share.master.copy_(share.weights);
  }
}

void ShardedAdamW::update(const Share& share, const at::Tensor& gradients, const UpdateStep& step) const {
  for (const Run<bool>& run : share.runs) {
    const auto part = [&run](const at::Tensor& tensor) { return tensor.narrow(0, run.first, run.length); };
    std::optional<at::Tensor> compute;
    if (!share.is_own_master()) compute = part(share.weights);
    const bool decays = run.kind;
    kernels::adamw_(part(share.master), part(share.exp_avg), part(share.exp_avg_sq), part(gradients), compute,
                    {.step = step.step,
                     .learning_rate = step.learning_rate,
                     .beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .epsilon = options_.epsilon,
                     .weight_decay = decays ? options_.weight_decay : 0,
                     .gradient_scale = step.gradient_scale});
  }
}

void ShardedAdamW::gather_after(const std::function<void(size_t)>& write_share) {
  std::vector<std::unique_ptr<comm::Pending>> gathers;
  for (size_t index = 0; index < shares_.size(); ++index) {
    write_share(index);
    if (is_sharded_) {
      gathers.push_back(dp_.all_gather_async(shares_[index].weights, buffers_.buckets()[index].weights));
    }
  }
  const tally::WorkScope work(tally::Work::kDataParallel);
  for (const auto& gather : gathers) gather->wait();
}

void ShardedAdamW::step(const GradientReducer& reducer, const UpdateStep& step) {
  gather_after([&](size_t index) { update(shares_[index], reducer.reduced(index), step); });
}

void ShardedAdamW::masters_changed() {
  gather_after([this](size_t index) {
    Share& share = shares_[index];
    if (!share.is_own_master()) share.weights.copy_(share.master);
  });
}

void ShardedAdamW::for_each_state(const std::function<void(const OptimizerState&)>& visit) const {
  for (size_t index = 0; index < shares_.size(); ++index) {
    const Share& share = shares_[index];
    for_each_segment(buffers_.buckets()[index], share.offset, share.weights.numel(), [&](const Segment& segment) {
      const auto part = [&segment](const at::Tensor& t) { return t.narrow(0, segment.in_range, segment.length); };
      visit({segment.parameter, segment.in_parameter, part(share.master), part(share.exp_avg), part(share.exp_avg_sq)});
    });
  }
}

}  // namespace layline::trainer::optimizer
