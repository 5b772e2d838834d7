#include "layline/layout/rank_map.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace layline::layout {
namespace {

constexpr std::array<Axis, kNumAxes> kPipelineSlowest = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
constexpr std::array<Axis, kNumAxes> kDataSlowest = {Axis::kTp, Axis::kCp, Axis::kPp, Axis::kDp};

}  // namespace

Placement place(int64_t size, int64_t stride, int64_t num_ranks, int64_t gpus_per_node) {
  assert(size >= 1 && stride >= 1 && gpus_per_node >= 1);
  if (size == 1) return {1, stride, 1, 1};
  if (stride >= gpus_per_node) return {size, stride, 1, size};
  const int64_t block = stride * size;
  const int64_t span = (size - 1) * stride;
  const int64_t num_blocks = std::max<int64_t>(1, num_ranks / block);
  // Groups start at block·i + a, a < stride. Modulo the node these offsets come as near to its end as this.
  const int64_t step = std::gcd(block, gpus_per_node);
  const int64_t latest_start = num_blocks == 1 ? stride - 1 : gpus_per_node - step + std::min(stride, step) - 1;
  const bool straddles = latest_start + span % gpus_per_node >= gpus_per_node;
  const int64_t members = std::min(size, (gpus_per_node + stride - 1) / stride);
  return {size, stride, members, span / gpus_per_node + 1 + (straddles ? 1 : 0)};
}

RankMap::RankMap(const Layout& layout, bool dp_slowest) : size_{layout.tp, layout.cp, layout.dp, layout.pp} {
  for (const Axis axis : dp_slowest ? kDataSlowest : kPipelineSlowest) {
    assert(size(axis) >= 1);
    stride_[static_cast<size_t>(axis)] = num_ranks_;
    num_ranks_ *= size(axis);
  }
}

Coordinates RankMap::coordinates(int64_t rank) const {
  assert(rank >= 0 && rank < num_ranks_);
  return {index(Axis::kTp, rank), index(Axis::kCp, rank), index(Axis::kDp, rank), index(Axis::kPp, rank)};
}

int64_t RankMap::rank(const Coordinates& at) const {
  return at.tp * stride(Axis::kTp) + at.cp * stride(Axis::kCp) + at.dp * stride(Axis::kDp) + at.pp * stride(Axis::kPp);
}

std::vector<int64_t> RankMap::group(Axis axis, int64_t rank) const {
  const int64_t first = rank - index(axis, rank) * stride(axis);
  std::vector<int64_t> ranks(static_cast<size_t>(size(axis)));
  for (int64_t i = 0; i < size(axis); ++i) ranks[static_cast<size_t>(i)] = first + i * stride(axis);
  return ranks;
}

std::vector<int64_t> RankMap::gradient_group(int64_t rank) const {
  std::vector<int64_t> ranks;
  for (const int64_t replica : group(Axis::kDp, rank)) {
    const std::vector<int64_t> part = group(Axis::kCp, replica);
    ranks.insert(ranks.end(), part.begin(), part.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<std::vector<int64_t>> RankMap::groups(Axis axis) const {
  std::vector<std::vector<int64_t>> all;
  for (int64_t rank = 0; rank < num_ranks_; ++rank) {
    if (index(axis, rank) == 0) all.push_back(group(axis, rank));
  }
  return all;
}

Placement RankMap::placement(Axis axis, int64_t gpus_per_node) const {
  return place(size(axis), stride(axis), num_ranks_, gpus_per_node);
}

Placement RankMap::gradient_placement(int64_t gpus_per_node) const {
  const int64_t dp = size(Axis::kDp), cp = size(Axis::kCp);
  if (cp == 1) return placement(Axis::kDp, gpus_per_node);
  if (dp == 1) return placement(Axis::kCp, gpus_per_node);
  const bool neighbours = stride(Axis::kDp) == stride(Axis::kCp) * cp;
  if (neighbours) return place(dp * cp, stride(Axis::kCp), num_ranks_, gpus_per_node);
  Placement joined = placement(Axis::kDp, gpus_per_node);
  const Placement inner = placement(Axis::kCp, gpus_per_node);
  joined.size = dp * cp;
  joined.members_per_node = std::min(joined.size, joined.members_per_node * inner.members_per_node);
  joined.num_nodes = std::max(joined.num_nodes, inner.num_nodes);
  if (joined.num_nodes > 1 && stride(Axis::kDp) >= gpus_per_node) joined.num_nodes = dp * inner.num_nodes;
  return joined;
}

Placement RankMap::shard_placement(int64_t shard, int64_t gpus_per_node) const {
  assert(shard >= 1 && size(Axis::kDp) % shard == 0);
  return place(shard, stride(Axis::kDp), num_ranks_, gpus_per_node);
}

}  // namespace layline::layout
