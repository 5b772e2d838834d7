#include "layline/trainer/optimizer/adamw.h"

#include <ATen/ATen.h>

#include <memory>
#include <optional>

#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/optimizer/segments.h"

namespace layline::trainer::optimizer {

ShardedAdamW::ShardedAdamW(FlatBuffers& buffers, comm::Group& dp, int zero, const OptimizerOptions& options)
    : buffers_(buffers), dp_(dp), is_sharded_(zero == 1 && dp.size() > 1), options_(options) {
  for (const Bucket& bucket : buffers.buckets()) {
    Share& share = shares_.emplace_back();
    const int64_t size = is_sharded_ ? bucket.size() / dp.size() : bucket.size();
    share.offset = is_sharded_ ? size * dp.rank() : 0;
    share.weights = bucket.weights.narrow(0, share.offset, size);
    share.exp_avg = at::zeros({size}, bucket.gradients.options());
    share.exp_avg_sq = at::zeros({size}, bucket.gradients.options());
    for_each_segment(bucket, share.offset, size, [&](const Segment& segment) {
      const bool decays = segment.parameter->decays;
      if (!share.runs.empty() && share.runs.back().decays == decays) {
        // Over a gap, too: its gradients, moments and weights are zero, and stay so.
        share.runs.back().length = segment.in_range + segment.length - share.runs.back().first;
      } else {
        share.runs.push_back({segment.in_range, segment.length, decays});
      }
    });
  }
  weights_changed();
}

void ShardedAdamW::weights_changed() {
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    const at::ScalarType wide = buffers_.buckets()[i].gradients.scalar_type();
    if (share.weights.scalar_type() == wide) {
      share.master = share.weights;
    } else if (share.master.defined()) {
      share.master.copy_(share.weights);
    } else {
      share.master = share.weights.to(wide);
    }
  }
}

void ShardedAdamW::update(const Share& share, const at::Tensor& gradients, const UpdateStep& step) const {
  for (const Run& run : share.runs) {
    const auto part = [&run](const at::Tensor& tensor) { return tensor.narrow(0, run.first, run.length); };
    std::optional<at::Tensor> compute;
    if (!share.master.is_same(share.weights)) compute = part(share.weights);
    kernels::adamw_(part(share.master), part(share.exp_avg), part(share.exp_avg_sq), part(gradients), compute,
                    {.step = step.step,
                     .learning_rate = step.learning_rate,
                     .beta1 = options_.beta1,
                     .beta2 = options_.beta2,
                     .epsilon = options_.epsilon,
                     .weight_decay = run.decays ? options_.weight_decay : 0,
                     .gradient_scale = step.gradient_scale});
  }
}

void ShardedAdamW::step(const GradientReducer& reducer, const UpdateStep& update_step) {
  std::vector<std::unique_ptr<comm::Pending>> gathers;
  for (size_t i = 0; i < shares_.size(); ++i) {
    update(shares_[i], reducer.reduced(i), update_step);
    // Travels while the next bucket is updated.
    if (is_sharded_) gathers.push_back(dp_.all_gather_async(shares_[i].weights, buffers_.buckets()[i].weights));
  }
  for (const auto& gather : gathers) gather->wait();
}

void ShardedAdamW::for_each_state(const std::function<void(const State&)>& visit) const {
  for (size_t i = 0; i < shares_.size(); ++i) {
    const Share& share = shares_[i];
    for_each_segment(buffers_.buckets()[i], share.offset, share.weights.numel(), [&](const Segment& segment) {
      const auto part = [&segment](const at::Tensor& t) { return t.narrow(0, segment.in_range, segment.length); };
      visit({segment.parameter, segment.in_parameter, part(share.master), part(share.exp_avg), part(share.exp_avg_sq)});
    });
  }
}

}  // namespace layline::trainer::optimizer
