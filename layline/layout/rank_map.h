// Which rank is which: rank ↔ (dp, tp, cp, pp), the groups that communicate, and how a group lies on the nodes.
//
//   RankMap map(layout, job.engine);
//   map.group(Axis::kTp, rank);                        // the ranks, for building communicators
//   map.placement(Axis::kDp, job.cluster.gpus_per_node);  // size, stride, nodes: O(1), for the cost model
//
// tp is fastest, then cp, dp, and pp slowest, as in Hagemann et al. 2024 and Aleph Alpha's scaling; an engine may have
// dp slowest instead (tp, cp, pp, dp). Ranks fill nodes in order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "layline/layout/layout.h"
#include "layline/spec/engine.h"

namespace layline::layout {

enum class Axis { kTp, kCp, kDp, kPp };
inline constexpr size_t kNumAxes = 4;

struct Coordinates {
  int64_t tp = 0, cp = 0, dp = 0, pp = 0;
  bool operator==(const Coordinates&) const = default;
};

// Where the groups of one kind lie. Groups that cross nodes at different offsets may differ; these are of the worst.
struct Placement {
  int64_t size = 1;              // ranks of a group
  int64_t stride = 1;            // ranks between neighbours
  int64_t members_per_node = 1;  // most members that share a node
  int64_t num_nodes = 1;         // nodes that a group touches
  bool inside_node() const { return num_nodes == 1; }
  bool operator==(const Placement&) const = default;
};

// The placement of groups {o, o + stride, …, o + (size − 1)·stride} that tile num_ranks ranks, in O(log): num_nodes is
// exact when stride or stride·size divides the node or the other way round, else the worst group's (an upper bound when
// there are few groups).
Placement place(int64_t size, int64_t stride, int64_t num_ranks, int64_t gpus_per_node);

class RankMap {
 public:
  // dp_slowest: order tp, cp, pp, dp instead of tp, cp, dp, pp.
  explicit RankMap(const Layout& layout, bool dp_slowest = false);
  RankMap(const Layout& layout, const spec::Engine& engine) : RankMap(layout, !engine.rank_order_tp_cp_dp_pp) {}

  int64_t num_ranks() const { return num_ranks_; }
  int64_t size(Axis axis) const { return size_[static_cast<size_t>(axis)]; }
  int64_t stride(Axis axis) const { return stride_[static_cast<size_t>(axis)]; }

  int64_t index(Axis axis, int64_t rank) const { return rank / stride(axis) % size(axis); }
  Coordinates coordinates(int64_t rank) const;
  int64_t rank(const Coordinates& coordinates) const;

  // The ranks that differ from `rank` in this axis only, `rank` among them, in order of their index.
  std::vector<int64_t> group(Axis axis, int64_t rank) const;
  // The ranks that share `rank`'s weights, dp and cp together: they reduce gradients. In rank order.
  std::vector<int64_t> gradient_group(int64_t rank) const;
  // All groups of an axis, each rank in exactly one.
  std::vector<std::vector<int64_t>> groups(Axis axis) const;

  Placement placement(Axis axis, int64_t gpus_per_node) const;
  // Of the gradient groups. With dp slowest and cp > 1 the group has two strides; then the dp stride is given, with
  // cp·dp members over as many nodes as the dp part has (cp's own are neighbours).
  Placement gradient_placement(int64_t gpus_per_node) const;
  // Of the groups of `shard` neighbours in dp that ZeRO-3 inside groups (hsdp) gathers from; cp is not part of it.
  Placement shard_placement(int64_t shard, int64_t gpus_per_node) const;

 private:
  std::array<int64_t, kNumAxes> size_{}, stride_{};
  int64_t num_ranks_ = 1;
};

}  // namespace layline::layout
