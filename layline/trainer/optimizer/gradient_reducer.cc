#include "layline/trainer/optimizer/gradient_reducer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <stdexcept>

#include "layline/trainer/model/mutation.h"

namespace layline::trainer::optimizer {

using model::mutated;
using model::Mutation;
using model::TensorSharding;

GradientReducer::GradientReducer(FlatBuffers& buffers, const ReductionGroups& groups, int zero)
    : buffers_(buffers), groups_(groups), zero_(zero), missing_(buffers.buckets().size()), pending_(missing_.size()) {
  const bool has_own_memory = zero == 1 && groups.dp.size() > 1;
  for (size_t i = 0; i < missing_.size(); ++i) {
    Bucket& bucket = buffers.buckets()[i];
    shards_.push_back(has_own_memory ? at::zeros({shard_size(bucket)}, bucket.gradients.options())
                                     : bucket.gradients.narrow(0, shard_offset(bucket), shard_size(bucket)));
    for (const PlacedParameter& placed : bucket.parameters) {
      placed.parameter->on_gradient = [this, i] { on_gradient(i); };
    }
  }
}

GradientReducer::~GradientReducer() {
  for (const Bucket& bucket : buffers_.buckets()) {
    for (const PlacedParameter& placed : bucket.parameters) placed.parameter->on_gradient = nullptr;
  }
}

void GradientReducer::begin_step(int64_t num_micro_batches) {
  for (size_t i = 0; i < missing_.size(); ++i) {
    Bucket& bucket = buffers_.buckets()[i];
    bucket.gradients.zero_();
    missing_[i] = 0;
    for (const PlacedParameter& placed : bucket.parameters) missing_[i] += placed.parameter->uses * num_micro_batches;
  }
}

void GradientReducer::on_gradient(size_t index) {
  if (mutated(Mutation::kReinitializeGradients)) buffers_.buckets()[index].gradients.mul_(0.5);
  if (--missing_[index] == 0 && !buffers_.buckets()[index].waits_for_sums) start(index);
}

void GradientReducer::start(size_t index) {
  if (groups_.dp.size() == 1 || mutated(Mutation::kSkipGradientReduction)) return;
  Bucket& bucket = buffers_.buckets()[index];
  pending_[index] = zero_ == 0 ? groups_.dp.all_reduce_async(bucket.gradients)
                               : groups_.dp.reduce_scatter_async(bucket.gradients, shards_[index]);
}

void GradientReducer::sum_over_other_groups(Bucket& bucket) {
  for (const PlacedParameter& placed : bucket.parameters) {
    const model::Parameter& parameter = *placed.parameter;
    if (parameter.sharding == TensorSharding::kPartial && !mutated(Mutation::kSkipPartialSum)) {
      groups_.tp.all_reduce(parameter.main_grad);
    }
    if (parameter.sharding == TensorSharding::kShardedReplicas && !mutated(Mutation::kSkipReplicaSum)) {
      groups_.replicas.all_reduce(parameter.main_grad);
    }
    if (parameter.is_tied && !mutated(Mutation::kSkipTiedSum)) groups_.tied->all_reduce(parameter.main_grad);
  }
}

void GradientReducer::finish() {
  for (size_t i = 0; i < missing_.size(); ++i) {
    Bucket& bucket = buffers_.buckets()[i];
    if (missing_[i] != 0) {
      throw std::logic_error(fmt::format("{} gradients of the bucket of {} are missing", missing_[i],
                                         bucket.parameters.front().parameter->name));
    }
    if (!bucket.waits_for_sums) continue;
    sum_over_other_groups(bucket);
    start(i);
  }
  for (auto& pending : pending_) {
    if (pending) pending->wait();
    pending.reset();
  }
}

}  // namespace layline::trainer::optimizer
