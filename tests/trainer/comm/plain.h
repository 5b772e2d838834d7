// What collectives must give, by plain loops over every rank's tensor, and tensors to give them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace layline::trainer::comm {

inline std::vector<at::ScalarType> summed_dtypes() { return {at::kDouble, at::kFloat, at::kBFloat16}; }

// Differs by rank and by `seed`; values whose sums round.
inline at::Tensor numbers(int64_t num, at::ScalarType dtype, int64_t rank, int64_t seed = 0) {
  const at::Tensor mixed = (at::arange(1, num + 1, at::kLong) * 7919 + (rank + 3) * 104729 + seed * 1299709) % 2003;
  return ((mixed - 1001).to(at::kDouble) / 96.0).to(dtype);
}

inline std::vector<at::Tensor> numbers_of_ranks(int64_t size, int64_t num, at::ScalarType dtype, int64_t seed = 0) {
  std::vector<at::Tensor> tensors;
  for (int64_t rank = 0; rank < size; ++rank) tensors.push_back(numbers(num, dtype, rank, seed));
  return tensors;
}

// Element by element over the ranks, as a scalar of that dtype is added; bf16 in fp32 and rounded once.
template <class Scalar, class Sum>
at::Tensor plain_sum_as(const std::vector<at::Tensor>& parts) {
  at::Tensor result = at::empty_like(parts[0]);
  for (int64_t i = 0; i < result.numel(); ++i) {
    Sum sum = static_cast<Sum>(parts[0].data_ptr<Scalar>()[i]);
    for (size_t rank = 1; rank < parts.size(); ++rank) sum += static_cast<Sum>(parts[rank].data_ptr<Scalar>()[i]);
    result.data_ptr<Scalar>()[i] = static_cast<Scalar>(sum);
  }
  return result;
}

inline at::Tensor plain_sum(const std::vector<at::Tensor>& parts) {
  if (parts[0].scalar_type() == at::kDouble) return plain_sum_as<double, double>(parts);
  if (parts[0].scalar_type() == at::kFloat) return plain_sum_as<float, float>(parts);
  return plain_sum_as<at::BFloat16, float>(parts);
}

// The sum of numbers() over all ranks; ranks that ask for the same one share it.
inline at::Tensor expected_sum(int64_t size, int64_t num, at::ScalarType dtype, int64_t seed = 0) {
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, int64_t, at::ScalarType, int64_t>, at::Tensor> sums;
  const std::lock_guard lock(mutex);
  at::Tensor& sum = sums[{size, num, dtype, seed}];
  if (!sum.defined()) sum = plain_sum(numbers_of_ranks(size, num, dtype, seed));
  return sum;
}

}  // namespace layline::trainer::comm
