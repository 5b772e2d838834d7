#include "layline/trainer/comm/scratch.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "layline/trainer/tally/tally.h"

namespace layline::trainer::comm {

int64_t scratch_bytes(const Call& call, int64_t group_size) {
  if (group_size == 1 || !is_reduction(call.operation)) return 0;
  const int64_t num = call.input.numel();
  const auto element_bytes = static_cast<int64_t>(call.input.element_size());
  if (call.operation != Operation::kReduceScatter && num * element_bytes <= kDirectBytes) {
    return group_size * num * element_bytes;
  }
  const int64_t part = (num + group_size - 1) / group_size;
  const int64_t segment = std::min(part, kSegmentBytes / element_bytes);
  const int64_t num_segments = segment == 0 ? 0 : (part + segment - 1) / segment;
  return std::min(num_segments, kSegmentWindow) * (group_size - 1) * segment * element_bytes;
}

at::Tensor Scratch::take(int64_t num_bytes, at::Device device) {
  if (!bytes_.defined() || bytes_.numel() < num_bytes || bytes_.device() != device) {
    const tally::OwnerScope owner(tally::Owner::kCommunication);
    bytes_.reset();
    bytes_ = at::empty({num_bytes}, at::TensorOptions(at::kByte).device(device));
  }
  return bytes_.narrow(0, 0, num_bytes);
}

}  // namespace layline::trainer::comm
