#include "layline/trainer/optimizer/gradient_reducer.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cassert>
#include <string>

#include "layline/base/error.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/optimizer/segments.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::optimizer {

using model::mutated;
using model::Mutation;
using model::Parameter;
using model::TensorSharding;

namespace {

[[noreturn]] void throw_wrong_count(const Parameter& parameter, int64_t found, int64_t num_micro_batches) {
  throw base::RunError("the gradient of " + parameter.name,
                       fmt::format("{} additions in a step of {} micro-batches; {} are expected", found,
                                   num_micro_batches, parameter.uses * num_micro_batches));
}

// One collective for all: pieces are few and small beside its latency.
void sum(comm::Group& group, const std::vector<at::Tensor>& pieces) {
  if (group.size() == 1 || pieces.empty()) return;
  if (pieces.size() == 1) return group.all_reduce(pieces.front());
  const at::Tensor joint = at::cat(pieces);
  group.all_reduce(joint);
  int64_t offset = 0;
  for (const at::Tensor& piece : pieces) {
    piece.copy_(joint.narrow(0, offset, piece.numel()));
    offset += piece.numel();
  }
}

}  // namespace

GradientReducer::GradientReducer(FlatBuffers& buffers, const ReductionGroups& groups, int zero)
    : buffers_(buffers), groups_(groups), zero_(zero), progress_(buffers.buckets().size()) {
  assert(zero == 0 || zero == 1);
  for (size_t index = 0; index < progress_.size(); ++index) {
    const std::vector<PlacedParameter>& parameters = buffers.buckets()[index].parameters;
    progress_[index].num_additions.resize(parameters.size());
    for (size_t place = 0; place < parameters.size(); ++place) {
      parameters[place].parameter->on_gradient = [this, index, place] { on_gradient(index, place); };
    }
  }
}

GradientReducer::~GradientReducer() {
  for (const Bucket& bucket : buffers_.buckets()) {
    for (const PlacedParameter& placed : bucket.parameters) placed.parameter->on_gradient = nullptr;
  }
}

at::Tensor GradientReducer::shard(size_t index) const {
  const Bucket& bucket = buffers_.buckets()[index];
  return bucket.gradients.narrow(0, shard_offset(bucket), shard_size(bucket));
}

at::Tensor GradientReducer::reduced(size_t index) const {
  return zero_ == 0 ? buffers_.buckets()[index].gradients : shard(index);
}

void GradientReducer::begin_step(int64_t num_micro_batches) {
  const tally::WorkScope work(tally::Work::kOptimizer);
  num_micro_batches_ = num_micro_batches;
  order_ = 0;
  for (size_t index = 0; index < progress_.size(); ++index) {
    Progress& progress = progress_[index];
    assert(!progress.pending);
    buffers_.buckets()[index].gradients.zero_();
    progress.num_additions.assign(progress.num_additions.size(), 0);
    progress.num_complete = 0;
  }
}

void GradientReducer::on_gradient(size_t index, size_t place) {
  Progress& progress = progress_[index];
  const Parameter& parameter = *buffers_.buckets()[index].parameters[place].parameter;
  const int64_t found = ++progress.num_additions[place], wanted = parameter.uses * num_micro_batches_;
  if (found > wanted) throw_wrong_count(parameter, found, num_micro_batches_);
  if (found == wanted && ++progress.num_complete == progress.num_additions.size()) start(index);
  if (mutated(Mutation::kReinitializeGradients) && found < wanted && found % parameter.uses == 0) {
    parameter.main_grad.zero_();
  }
}

void GradientReducer::start(size_t index) {
  constexpr int64_t kPrime = 1'000'003;
  order_ = (order_ * static_cast<int64_t>(progress_.size() + 1) + static_cast<int64_t>(index) + 1) % kPrime;
  if (groups_.dp.size() == 1 || mutated(Mutation::kSkipGradientReduction)) return;
  const at::Tensor gradients = buffers_.buckets()[index].gradients;
  progress_[index].pending =
      zero_ == 0 ? groups_.dp.all_reduce_async(gradients) : groups_.dp.reduce_scatter_async(gradients, shard(index));
}

void GradientReducer::check_complete() const {
  for (size_t index = 0; index < progress_.size(); ++index) {
    for (size_t place = 0; place < progress_[index].num_additions.size(); ++place) {
      const Parameter& parameter = *buffers_.buckets()[index].parameters[place].parameter;
      const int64_t found = progress_[index].num_additions[place];
      if (found != parameter.uses * num_micro_batches_) throw_wrong_count(parameter, found, num_micro_batches_);
    }
  }
}

// Buckets of layers have one size: in another order they would meet in silence.
void GradientReducer::compare_order() const {
  const at::Tensor extremes = at::tensor({order_, -order_}, at::kLong).to(buffers_.exchange_device());
  groups_.dp.all_reduce_max(extremes);
  const at::Tensor found = extremes.cpu();
  if (found[0].item<int64_t>() == order_ && found[1].item<int64_t>() == -order_) return;
  throw base::RunError("group " + groups_.dp.name(), "its ranks finished their backward passes in different orders");
}

std::vector<at::Tensor> GradientReducer::reduced_runs(const std::function<bool(const Parameter&)>& is_wanted) const {
  std::vector<at::Tensor> runs;
  for (size_t index = 0; index < progress_.size(); ++index) {
    const Bucket& bucket = buffers_.buckets()[index];
    const int64_t offset = zero_ == 0 ? 0 : shard_offset(bucket);
    const at::Tensor gradients = reduced(index);
    for_each_run(bucket, offset, gradients.numel(), is_wanted, [&](const Run<bool>& run) {
      if (run.kind) runs.push_back(gradients.narrow(0, run.first, run.length));
    });
  }
  return runs;
}

void GradientReducer::sum_over_other_groups() {
  const auto with_sharding = [this](TensorSharding sharding) {
    return reduced_runs([sharding](const Parameter& parameter) { return parameter.sharding == sharding; });
  };
  {
    const tally::WorkScope work(tally::Work::kTensorParallel);
    if (!mutated(Mutation::kSkipPartialSum)) sum(groups_.tp, with_sharding(TensorSharding::kPartial));
    if (!mutated(Mutation::kSkipReplicaSum)) sum(groups_.replicas, with_sharding(TensorSharding::kShardedReplicas));
  }
  const std::vector<at::Tensor> tied = reduced_runs([](const Parameter& parameter) { return parameter.is_tied; });
  assert(tied.empty() || groups_.tied != nullptr);
  if (groups_.tied != nullptr && !mutated(Mutation::kSkipTiedSum)) sum(*groups_.tied, tied);
}

void GradientReducer::finish() {
  check_complete();
  const tally::WorkScope work(tally::Work::kDataParallel);
  for (Progress& progress : progress_) {
    if (progress.pending) progress.pending->wait();
    progress.pending.reset();
  }
  if (kComparesOrder && groups_.dp.size() > 1) compare_order();
  sum_over_other_groups();
}

}  // namespace layline::trainer::optimizer
