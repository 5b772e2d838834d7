// Sums gradients over the ranks that share weights. A bucket's sum over data-parallel replicas starts as soon as the
// last micro-batch has added to all of its parameters, and runs beside the rest of the backward pass.
//
//   reducer.begin_step(num_micro_batches);   … the pipeline runs …   reducer.finish();
//   reducer.shard(bucket)                    // this rank's share of the summed gradients
//
// Gradients already carry 1 / (unmasked tokens of the global batch): all reductions are plain sums.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/optimizer/flat_buffers.h"

namespace layline::trainer::optimizer {

struct ReductionGroups {
  comm::Group& dp;
  comm::Group& tp;
  comm::Group& replicas;  // that hold the same key-value heads
  comm::Group* tied;      // of first and last stage; null where this rank holds no tied copy
};

class GradientReducer {
 public:
  // Registers itself with the parameters. zero: 0 leaves every rank all gradients (all-reduce), 1 its share
  // (reduce-scatter). Buffers and groups outlive it.
  GradientReducer(FlatBuffers& buffers, const ReductionGroups& groups, int zero);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Zeroes the main gradients.
  void begin_step(int64_t num_micro_batches);
  // Does what is left and waits. Throws std::logic_error when a parameter did not get all of its gradients.
  void finish();

  // Element at which this rank's share of a bucket begins; its length is size / dp.
  int64_t shard_offset(const Bucket& bucket) const { return shard_size(bucket) * groups_.dp.rank(); }
  int64_t shard_size(const Bucket& bucket) const { return bucket.size() / groups_.dp.size(); }
  // The summed gradients of this rank's share of bucket `index`, after finish().
  const at::Tensor& shard(size_t index) const { return shards_[index]; }
  // All summed gradients of the bucket that this rank has: with ZeRO-0 the whole bucket, with ZeRO-1 the share.
  const at::Tensor& reduced(size_t index) const {
    return zero_ == 0 ? buffers_.buckets()[index].gradients : shards_[index];
  }

 private:
  void on_gradient(size_t index);
  void start(size_t index);
  void sum_over_other_groups(Bucket& bucket);

  FlatBuffers& buffers_;
  ReductionGroups groups_;
  int zero_;
  std::vector<at::Tensor> shards_;  // views of the gradients with ZeRO-0 or one replica
  std::vector<int64_t> missing_;    // additions to come, a bucket
  std::vector<std::unique_ptr<comm::Pending>> pending_;
};

}  // namespace layline::trainer::optimizer
