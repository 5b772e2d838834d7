#include "layline/trainer/optimizer/flat_buffers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "layline/trainer/tally/tally.h"

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
  for (const model::Parameter* parameter : group.parameters) {
    assert(std::equal(shape.begin() + 1, shape.end(), parameter->local_shape.begin() + 1));
    shape[0] += parameter->local_shape[0];
  }
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
    offset += parameter->num_local();
  }
}

[[maybe_unused]] bool is_tied(const PlacedParameter& placed) { return placed.parameter->is_tied; }

}  // namespace

FlatBuffers::FlatBuffers(const std::vector<std::vector<model::ParameterGroup*>>& chunks, int64_t dp,
                         const at::TensorOptions& options)
    : exchange_device_(options.device().is_meta() ? at::Device(at::kCPU) : options.device()) {
  for (const auto& groups : chunks) {
    std::map<int64_t, std::vector<model::ParameterGroup*>> by_bucket;
    for (model::ParameterGroup* group : groups) by_bucket[group->bucket].push_back(group);
    for (const auto& [number, members] : by_bucket) add_bucket(members, dp, options);
  }
}

void FlatBuffers::add_bucket(const std::vector<model::ParameterGroup*>& groups, int64_t dp,
                             const at::TensorOptions& options) {
  const at::ScalarType dtype = c10::typeMetaToScalarType(options.dtype());
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
  {
    const tally::OwnerScope owner(tally::Owner::kWeights);
    bucket.weights = at::zeros({size}, options);
  }
  {
    const tally::OwnerScope owner(tally::Owner::kGradients);
    bucket.gradients = at::zeros({size}, options.dtype(wide));
  }
  for (size_t i = 0; i < groups.size(); ++i) place(*groups[i], bucket, offsets[i]);
  assert(bucket.parameters.size() == 1 || std::none_of(bucket.parameters.begin(), bucket.parameters.end(), is_tied));
}

}  // namespace layline::trainer::optimizer
