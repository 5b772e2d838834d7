#include "layline/trainer/data/batch.h"

#include <ATen/ATen.h>

#include <cassert>

namespace layline::trainer::data {

int64_t first_global_index(const BatchSlice& slice) {
  assert(slice.first_sample >= 0 && slice.global_batch % (slice.dp * slice.mb) == 0);
  assert(slice.dp_rank >= 0 && slice.dp_rank < slice.dp);
  assert(slice.index >= 0 && slice.index < slice.global_batch / (slice.dp * slice.mb));
  const int64_t in_batch = slice.dp_rank * (slice.global_batch / slice.dp) + slice.index * slice.mb;
  return slice.first_sample + in_batch;
}

MicroBatch read_micro_batch(const DataSet& data, const BatchSlice& slice) {
  const int64_t B = slice.mb, S = data.sequence_length();
  MicroBatch batch{at::empty({B, S}, at::kLong), at::empty({B, S}, at::kLong)};
  const std::span<int64_t> tokens(batch.tokens_BS.mutable_data_ptr<int64_t>(), static_cast<size_t>(B * S));
  const std::span<int64_t> targets(batch.targets_BS.mutable_data_ptr<int64_t>(), static_cast<size_t>(B * S));
  const int64_t first = first_global_index(slice);
  for (int64_t b = 0; b < B; ++b) {
    const auto start = static_cast<size_t>(b * S), count = static_cast<size_t>(S);
    data.sample(first + b, tokens.subspan(start, count), targets.subspan(start, count));
  }
  return batch;
}

}  // namespace layline::trainer::data
