#include "layline/trainer/optimizer/flat_buffers.h"

#include <ATen/ATen.h>

#include <cassert>
#include <map>

namespace layline::trainer::optimizer {

namespace {

constexpr int64_t kAlignmentBytes = 64;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int64_t num_elements(const model::ParameterGroup& group) {
  int64_t n = 0;
  for (const model::Parameter* parameter : group.parameters) n += parameter->num_local();
  return n;
}

std::vector<int64_t> fused_shape(const model::ParameterGroup& group) {
  std::vector<int64_t> shape = group.parameters.front()->local_shape;
  shape[0] = 0;
  for (const model::Parameter* parameter : group.parameters) shape[0] += parameter->local_shape[0];
  return shape;
}

// Views of a group and of its parameters, from `offset` on.
void place(model::ParameterGroup& group, Bucket& bucket, int64_t offset) {
  const int64_t n = num_elements(group);
  group.value = bucket.weights.narrow(0, offset, n).view(fused_shape(group));
  group.main_grad = bucket.gradients.narrow(0, offset, n).view(fused_shape(group));
  for (model::Parameter* parameter : group.parameters) {
    parameter->value = bucket.weights.narrow(0, offset, parameter->num_local()).view(parameter->local_shape);
    parameter->main_grad = bucket.gradients.narrow(0, offset, parameter->num_local()).view(parameter->local_shape);
    bucket.parameters.push_back({parameter, offset});
    bucket.is_tied |= parameter->is_tied;
    bucket.waits_for_sums |= parameter->is_tied || parameter->sharding == model::TensorSharding::kPartial ||
                             parameter->sharding == model::TensorSharding::kShardedReplicas;
    offset += parameter->num_local();
  }
}

}  // namespace

FlatBuffers::FlatBuffers(const std::vector<std::vector<model::ParameterGroup*>>& chunks, int64_t dp,
                         at::ScalarType dtype) {
  for (const auto& groups : chunks) {
    std::map<int64_t, std::vector<model::ParameterGroup*>> by_bucket;
    for (model::ParameterGroup* group : groups) by_bucket[group->bucket].push_back(group);
    for (const auto& [number, members] : by_bucket) add_bucket(members, dp, dtype);
  }
}

void FlatBuffers::add_bucket(const std::vector<model::ParameterGroup*>& groups, int64_t dp, at::ScalarType dtype) {
  const int64_t alignment = kAlignmentBytes / static_cast<int64_t>(c10::elementSize(dtype));
  std::vector<int64_t> offsets;
  int64_t size = 0;
  for (const model::ParameterGroup* group : groups) {
    offsets.push_back(size);
    size = round_up(size + num_elements(*group), alignment);
  }
  size = round_up(size, alignment * dp);

  Bucket& bucket = buckets_.emplace_back();
  const at::ScalarType wide = dtype == at::kDouble ? at::kDouble : at::kFloat;
  bucket.weights = at::zeros({size}, at::TensorOptions().dtype(dtype));
  bucket.gradients = at::zeros({size}, at::TensorOptions().dtype(wide));
  for (size_t i = 0; i < groups.size(); ++i) place(*groups[i], bucket, offsets[i]);
  assert(!bucket.is_tied || groups.size() == 1);
}

}  // namespace layline::trainer::optimizer
