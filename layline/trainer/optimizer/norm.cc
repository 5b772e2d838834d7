#include "layline/trainer/optimizer/norm.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "layline/base/error.h"
#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/optimizer/segments.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::optimizer {

namespace {

using model::mutated;
using model::Mutation;
using model::Parameter;

// How sure a rank is that a bad gradient is its own.
enum class Blame : char { kNone, kShared, kOwn };

struct Finding {
  Blame blame = Blame::kNone;
  std::string name;
};

bool is_counted(const Parameter& parameter) {
  return parameter.is_counted || (mutated(Mutation::kCountReplicated) && !parameter.is_tied_copy);
}

// This rank's first bad parameter. Outside its share it has what it computed itself (or, with ZeRO-0, what all have);
// in its share, what any replica may have brought.
Finding find_bad_parameter(const FlatBuffers& buffers, const GradientReducer& reducer) {
  Finding shared;
  for (const Bucket& bucket : buffers.buckets()) {
    const int64_t begin = reducer.shard_offset(bucket), end = begin + reducer.shard_size(bucket);
    const auto is_bad = [&](int64_t first, int64_t last) {
      return first < last && !kernels::all_finite(bucket.gradients.narrow(0, first, last - first));
    };
    for (const auto& [parameter, first] : bucket.parameters) {
      const int64_t last = first + parameter->num_local();
      if (is_bad(first, std::min(last, begin)) || is_bad(std::max(first, end), last)) {
        return {Blame::kOwn, parameter->name};
      }
      if (shared.blame == Blame::kNone && is_bad(std::max(first, begin), std::min(last, end))) {
        shared = {Blame::kShared, parameter->name};
      }
    }
  }
  return shared;
}

// All ranks exchange what they found, and agree on the first rank that is surest.
std::string describe_bad_gradient(const FlatBuffers& buffers, const GradientReducer& reducer, comm::Group& world) {
  constexpr int64_t kRowBytes = 512;  // Blame, then the name; longer ones are cut
  const Finding own = find_bad_parameter(buffers, reducer);
  const at::Tensor row = at::zeros({kRowBytes}, at::kByte);
  char* bytes = static_cast<char*>(row.mutable_data_ptr());
  bytes[0] = static_cast<char>(own.blame);
  std::memcpy(bytes + 1, own.name.data(), std::min<size_t>(own.name.size(), kRowBytes - 2));

  const at::Device device = buffers.exchange_device();
  const at::Tensor gathered = at::empty({world.size() * kRowBytes}, at::TensorOptions(at::kByte).device(device));
  world.all_gather(row.to(device), gathered);
  const at::Tensor rows = gathered.cpu();
  const char* first = static_cast<const char*>(rows.const_data_ptr());
  for (const Blame blame : {Blame::kOwn, Blame::kShared}) {
    for (int64_t rank = 0; rank < world.size(); ++rank) {
      const char* found = first + rank * kRowBytes;
      if (found[0] != static_cast<char>(blame)) continue;
      return fmt::format("the gradient of {} on rank {} is not finite", found + 1, rank);
    }
  }
  return "the gradients' sum of squares is not finite";
}

}  // namespace

double global_norm(const FlatBuffers& buffers, const GradientReducer& reducer, comm::Group& world, int64_t step) {
  const tally::WorkScope work(tally::Work::kOptimizer);
  double sum = 0;
  for (size_t index = 0; index < buffers.buckets().size(); ++index) {
    const Bucket& bucket = buffers.buckets()[index];
    const at::Tensor shard = reducer.shard(index);
    for_each_run(bucket, reducer.shard_offset(bucket), shard.numel(), is_counted, [&](const Run<bool>& run) {
      if (run.kind) sum += kernels::sum_of_squares(shard.narrow(0, run.first, run.length));
    });
  }
  const at::Tensor total = at::full({1}, sum, at::TensorOptions(at::kDouble).device(buffers.exchange_device()));
  {
    const tally::WorkScope wait(tally::Work::kDataParallel);
    world.all_reduce(total);
  }
  const double norm = std::sqrt(total.item<double>());
  if (!std::isfinite(norm)) {
    throw base::RunError(fmt::format("step {}", step), describe_bad_gradient(buffers, reducer, world));
  }
  return norm;
}

double clip_factor(double norm, double clip) {
  if (clip == 0 || mutated(Mutation::kNoClip)) return 1;
  return std::min(1.0, clip / (norm + 1e-6));
}

}  // namespace layline::trainer::optimizer
