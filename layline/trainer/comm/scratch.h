// Working memory of collectives: what Gloo's take, and what fake groups say they would take.
//
// A group keeps one for calls that wait and one for those that run beside the computation. Each grows to the largest
// call so far and stays, so that the bytes that a rank holds do not depend on when a collective runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "layline/trainer/comm/call.h"

namespace layline::trainer::comm {

// Reductions of up to so many bytes go from every rank to every rank, whole. Longer ones go in segments of so many
// bytes, of which a rank receives kSegmentWindow at one time.
inline constexpr int64_t kDirectBytes = int64_t{32} << 10;
inline constexpr int64_t kSegmentBytes = int64_t{512} << 10;
inline constexpr int64_t kSegmentWindow = 3;

// What a call takes in a group of that size, the same on all of its ranks.
int64_t scratch_bytes(const Call& call, int64_t group_size);

class Scratch {
 public:
  // At least so many bytes, [num_bytes] uint8 on the device. What the last call got may be gone.
  at::Tensor take(int64_t num_bytes, at::Device device);

 private:
  at::Tensor bytes_;
};

}  // namespace layline::trainer::comm
