// The weights and main gradients of a rank, in a flat buffer a bucket: what is reduced, sharded and updated together
// lies together.
//
//   FlatBuffers buffers({stage_0.groups(), stage_1.groups()}, dp, at::kBFloat16);   // now parameters have values
//
// Groups of parameters lie in a bucket without gaps, each starting at a multiple of 64 bytes of the weights; a bucket's
// length is a multiple of dp · 64 bytes, so that every replica has the same share. Gaps are zero and stay zero. The
// layout follows from local shapes and bucket numbers alone: ranks that agree in those agree in every offset.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "layline/trainer/model/parameter.h"

namespace layline::trainer::optimizer {

struct PlacedParameter {
  model::Parameter* parameter = nullptr;
  int64_t offset = 0;  // elements, in the bucket
};

struct Bucket {
  std::vector<PlacedParameter> parameters;  // in order
  at::Tensor weights;                       // flat, compute dtype
  at::Tensor gradients;                     // flat, fp32 (fp64)

  int64_t size() const { return weights.numel(); }
};

class FlatBuffers {
 public:
  // chunks: the parameter groups of each virtual stage; values and main gradients, of the groups and of their
  // parameters, are set to views, all zero. A parameter that is_tied is alone in its bucket: its share is then the same
  // on both stages. options: dtype and device of the weights. The groups outlive the buffers' users.
  FlatBuffers(const std::vector<std::vector<model::ParameterGroup*>>& chunks, int64_t dp,
              const at::TensorOptions& options);

  // Chunk by chunk, by bucket number.
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }

  // Where numbers that ranks exchange must lie: the weights' device, but main memory in dry runs.
  at::Device exchange_device() const { return exchange_device_; }

 private:
  void add_bucket(const std::vector<model::ParameterGroup*>& groups, int64_t dp, const at::TensorOptions& options);

  std::vector<Bucket> buckets_;
  at::Device exchange_device_;
};

}  // namespace layline::trainer::optimizer
