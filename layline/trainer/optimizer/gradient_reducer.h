// Sums gradients over the ranks that share weights. A bucket's sum over data-parallel replicas starts as soon as the
// last micro-batch has added to all of its parameters, and runs beside the rest of the backward pass. Sums over other
// ranks come at the end, of this rank's share only: over tp (TensorSharding::kPartial), over the replicas of key-value
// heads, and over the two stages that hold a tied embedding.
//
//   reducer.begin_step(num_micro_batches);   … the pipeline runs …   reducer.finish();
//   reducer.shard(index)                     // this rank's share of the summed gradients of a bucket
//
// Gradients already carry 1 / (unmasked tokens of the global batch): all reductions are plain sums. Sums are taken in
// the same order with ZeRO-0 and ZeRO-1, so they give the same bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
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
  // Debug builds compare in every step the order in which ranks of dp started their buckets.
#ifdef NDEBUG
  static constexpr bool kComparesOrder = false;
#else
  static constexpr bool kComparesOrder = true;
#endif

  // Registers itself with the parameters. zero: 0 leaves every rank all gradients (all-reduce), 1 its share
  // (reduce-scatter, in place: outside its share a rank keeps its own unsummed gradients). Buffers and groups outlive
  // it.
  GradientReducer(FlatBuffers& buffers, const ReductionGroups& groups, int zero);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Zeroes the main gradients.
  void begin_step(int64_t num_micro_batches);
  // Does what is left and waits. Throws base::RunError when a parameter did not get uses · num_micro_batches additions
  // (name and counts; one too many is noticed at once). Every rank calls it.
  void finish();

  // Element at which this rank's share of a bucket begins; its length is size / dp.
  int64_t shard_offset(const Bucket& bucket) const { return shard_size(bucket) * groups_.dp.rank(); }
  int64_t shard_size(const Bucket& bucket) const { return bucket.size() / groups_.dp.size(); }
  // The summed gradients of this rank's share of bucket `index`, after finish().
  at::Tensor shard(size_t index) const;
  // All summed gradients of the bucket that this rank has: with ZeRO-0 the whole bucket, with ZeRO-1 the share.
  at::Tensor reduced(size_t index) const;

 private:
  // Of a bucket in this step.
  struct Progress {
    std::vector<int64_t> num_additions;  // a parameter
    size_t num_complete = 0;             // parameters
    std::unique_ptr<comm::Pending> pending;
  };

  void on_gradient(size_t index, size_t place);
  void start(size_t index);
  void check_complete() const;
  void compare_order() const;
  std::vector<at::Tensor> reduced_runs(const std::function<bool(const model::Parameter&)>& is_wanted) const;
  void sum_over_other_groups();

  FlatBuffers& buffers_;
  ReductionGroups groups_;
  int zero_;
  int64_t num_micro_batches_ = 0;
  std::vector<Progress> progress_;
  int64_t order_ = 0;  // a number for the order in which buckets were started
};

}  // namespace layline::trainer::optimizer
