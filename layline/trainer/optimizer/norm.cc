#include "layline/trainer/optimizer/norm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string>

#include "layline/base/error.h"
#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/optimizer/segments.h"

namespace layline::trainer::optimizer {

namespace {

using model::mutated;
using model::Mutation;

constexpr int64_t kNameBytes = 256;

template <typename Visit>
void for_each_shard_segment(const FlatBuffers& buffers, const GradientReducer& reducer, const Visit& visit) {
  for (size_t i = 0; i < buffers.buckets().size(); ++i) {
    const Bucket& bucket = buffers.buckets()[i];
    for_each_segment(bucket, reducer.shard_offset(bucket), reducer.shard_size(bucket), [&](const Segment& segment) {
      visit(*segment.parameter, reducer.shard(i).narrow(0, segment.in_range, segment.length));
    });
  }
}

// Where the first bad gradient of the world is: all ranks exchange the name of theirs.
std::string name_bad_parameter(const FlatBuffers& buffers, const GradientReducer& reducer, comm::Group& world) {
  std::string bad;
  for_each_shard_segment(buffers, reducer, [&](const model::Parameter& parameter, const at::Tensor& gradient) {
    if (bad.empty() && !kernels::all_finite(gradient)) bad = parameter.name.substr(0, kNameBytes - 1);
  });
  const at::Tensor mine = at::zeros({kNameBytes}, at::kDouble),
                   all = at::zeros({kNameBytes * world.size()}, at::kDouble);
  for (size_t i = 0; i < bad.size(); ++i) mine[static_cast<int64_t>(i)] = static_cast<double>(bad[i]);
  world.all_gather(mine, all);
  const double* codes = all.const_data_ptr<double>();
  for (int64_t rank = 0; rank < world.size(); ++rank) {
    std::string name;
    for (int64_t i = 0; i < kNameBytes && codes[rank * kNameBytes + i] != 0; ++i) {
      name += static_cast<char>(codes[rank * kNameBytes + i]);
    }
    if (!name.empty()) return fmt::format("the gradient of {} on rank {} is not finite", name, rank);
  }
  return "the gradients' sum of squares is not finite";
}

}  // namespace

double global_norm(const FlatBuffers& buffers, const GradientReducer& reducer, comm::Group& world, int64_t step) {
  double sum = 0;
  for_each_shard_segment(buffers, reducer, [&](const model::Parameter& parameter, const at::Tensor& gradient) {
    const bool counts = parameter.is_counted || (mutated(Mutation::kCountReplicated) && !parameter.is_tied_copy);
    if (counts) sum += kernels::sum_of_squares(gradient);
  });
  const at::Tensor total = at::full({1}, sum, at::kDouble);
  world.all_reduce(total);
  const double norm = std::sqrt(total.item<double>());
  if (!std::isfinite(norm)) {
    throw base::RunError(fmt::format("step {}", step), name_bad_parameter(buffers, reducer, world));
  }
  return norm;
}

double clip_factor(double norm, double clip) {
  if (clip == 0 || mutated(Mutation::kNoClip)) return 1;
  return std::min(1.0, clip / (norm + 1e-6));
}

}  // namespace layline::trainer::optimizer
