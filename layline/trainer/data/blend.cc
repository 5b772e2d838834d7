#include "layline/trainer/data/blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "layline/base/error.h"

namespace layline::trainer::data {
namespace {

__extension__ using Wide = unsigned __int128;

// Whether sample `index_a` of a source of weight a is due before sample `index_b` of one of weight b.
bool is_due_before(uint64_t index_a, uint64_t weight_a, uint64_t index_b, uint64_t weight_b) {
  return Wide{2 * index_a + 1} * weight_b < Wide{2 * index_b + 1} * weight_a;
}

size_t next_source(const std::vector<uint64_t>& counts, const std::vector<uint64_t>& weights) {
  size_t next = 0;
  for (size_t source = 1; source < weights.size(); ++source) {
    if (is_due_before(counts[source], weights[source], counts[next], weights[next])) next = source;
  }
  return next;
}

}  // namespace

Blend::Blend(const std::vector<double>& weights) {
  if (weights.empty()) throw base::InputError("data", "no source; want at least one");
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight <= 0) {
      throw base::InputError("data", fmt::format("a source has the weight {}; want a number above 0", weight));
    }
  }
  // Divided first: the sum of large weights need not be finite.
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (const double weight : weights) sum += weight / largest;
  constexpr double kScale = 4294967296.0;
  for (const double weight : weights) {
    weights_.push_back(std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(weight / largest / sum * kScale))));
  }
  sum_ = std::accumulate(weights_.begin(), weights_.end(), uint64_t{0});
}

Blend::Draw Blend::draw(int64_t index) const {
  assert(index >= 0 && index < int64_t{1} << 60);
  if (weights_.size() == 1) return {.source = 0, .index = index};
  // What is due before a time a little earlier than `index` is at most `index` samples; the rest is counted one by one.
  const auto time = static_cast<uint64_t>(std::max<int64_t>(0, index - static_cast<int64_t>(weights_.size())));
  std::vector<uint64_t> counts;
  uint64_t num_drawn = 0;
  for (const uint64_t weight : weights_) {
    counts.push_back(static_cast<uint64_t>((Wide{2} * weight * time + sum_ - 1) / (Wide{2} * sum_)));
    num_drawn += counts.back();
  }
  assert(num_drawn <= static_cast<uint64_t>(index));
  for (; num_drawn < static_cast<uint64_t>(index); ++num_drawn) ++counts[next_source(counts, weights_)];
  const size_t source = next_source(counts, weights_);
  return {.source = source, .index = static_cast<int64_t>(counts[source])};
}

}  // namespace layline::trainer::data
