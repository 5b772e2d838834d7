#include "layline/trainer/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "layline/trainer/data/random.h"

namespace layline::trainer::data {
namespace {

// Few bits a half make weak rounds.
constexpr uint64_t kRounds = 12;

}  // namespace

Permutation::Permutation(int64_t size, uint64_t key)
    : size_(static_cast<uint64_t>(size)),
      key_(key),
      half_bits_((static_cast<unsigned>(std::bit_width(size_ - 1)) + 1) / 2) {
  assert(size >= 1);
}

int64_t Permutation::operator()(int64_t index) const {
  assert(index >= 0 && static_cast<uint64_t>(index) < size_);
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t swapped = left ^ (mix(key_ + round, right) & mask);
      left = right;
      right = swapped;
    }
    value = left << half_bits_ | right;
  } while (value >= size_);
  const bool is_odd = (mix(key_, kRounds) & 1) != 0;
  if (is_odd && size_ >= 2 && value < 2) value ^= 1;
  return static_cast<int64_t>(value);
}

SampleOrder::SampleOrder(int64_t num_samples, Order order, uint64_t seed)
    : num_samples_(num_samples), order_(order), seed_(seed) {
  assert(num_samples >= 1);
}

SourceSample SampleOrder::source_sample(int64_t index) const {
  assert(index >= 0);
  const int64_t epoch = index / num_samples_, position = index % num_samples_;
  if (order_ == Order::kSequential) return {.epoch = epoch, .sample = position};
  const Permutation permutation(num_samples_, mix(seed_, static_cast<uint64_t>(epoch)));
  return {.epoch = epoch, .sample = permutation(position)};
}

}  // namespace layline::trainer::data
