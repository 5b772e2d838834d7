#include "layline/layout/rank_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace layline::layout {
namespace {

using testing::ElementsAre;

constexpr Axis kAxes[] = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};

Layout mesh(int64_t dp, int64_t tp, int64_t pp, int64_t cp = 1) {
  Layout layout;
  layout.dp = dp;
  layout.tp = tp;
  layout.pp = pp;
  layout.cp = cp;
  return layout;
}

Layout any_mesh() {
  const auto axis = [] { return *rc::gen::inRange<int64_t>(1, 7); };
  return mesh(axis(), axis(), axis(), axis());
}

int64_t nodes_of(const std::vector<int64_t>& ranks, int64_t gpus_per_node) {
  std::set<int64_t> nodes;
  for (const int64_t rank : ranks) nodes.insert(rank / gpus_per_node);
  return static_cast<int64_t>(nodes.size());
}

int64_t most_on_a_node(const std::vector<int64_t>& ranks, int64_t gpus_per_node) {
  std::map<int64_t, int64_t> members;
  int64_t most = 0;
  for (const int64_t rank : ranks) most = std::max(most, ++members[rank / gpus_per_node]);
  return most;
}

RC_GTEST_PROP(RankMap, TakesEveryRankToItsCoordinatesAndBack, ()) {
  const Layout layout = any_mesh();
  const RankMap map(layout, *rc::gen::arbitrary<bool>());
  RC_ASSERT(map.num_ranks() == layout.world_size());
  for (int64_t rank = 0; rank < map.num_ranks(); ++rank) RC_ASSERT(map.rank(map.coordinates(rank)) == rank);
}

RC_GTEST_PROP(RankMap, GroupsOfAnAxisHoldEachRankOnceAndDifferInThatAxisOnly, ()) {
  const RankMap map(any_mesh(), *rc::gen::arbitrary<bool>());
  for (const Axis axis : kAxes) {
    std::set<int64_t> seen;
    for (const std::vector<int64_t>& group : map.groups(axis)) {
      RC_ASSERT(static_cast<int64_t>(group.size()) == map.size(axis));
      for (size_t i = 0; i < group.size(); ++i) {
        RC_ASSERT(seen.insert(group[i]).second);
        RC_ASSERT(map.index(axis, group[i]) == static_cast<int64_t>(i));
        RC_ASSERT(map.group(axis, group[i]) == group);
      }
    }
    RC_ASSERT(static_cast<int64_t>(seen.size()) == map.num_ranks());
  }
}

RC_GTEST_PROP(RankMap, PlacementIsThatOfTheWorstGroup, ()) {
  const RankMap map(any_mesh(), *rc::gen::arbitrary<bool>());
  const auto gpus_per_node = *rc::gen::inRange<int64_t>(1, 13);
  for (const Axis axis : kAxes) {
    int64_t nodes = 0, members = 0;
    for (const std::vector<int64_t>& group : map.groups(axis)) {
      nodes = std::max(nodes, nodes_of(group, gpus_per_node));
      members = std::max(members, most_on_a_node(group, gpus_per_node));
    }
    const Placement placement = map.placement(axis, gpus_per_node);
    RC_ASSERT(placement.size == map.size(axis));
    RC_ASSERT(placement.num_nodes >= nodes);
    RC_ASSERT(placement.members_per_node >= members);
    const int64_t block = placement.size * placement.stride;
    const auto nest = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
    if (nest(placement.stride, gpus_per_node) && nest(block, gpus_per_node)) {
      RC_ASSERT(placement.num_nodes == nodes);
      RC_ASSERT(placement.members_per_node == members);
    }
  }
}

RC_GTEST_PROP(RankMap, GradientGroupsJoinDpAndCp, ()) {
  const RankMap map(any_mesh(), *rc::gen::arbitrary<bool>());
  const auto rank = *rc::gen::inRange<int64_t>(0, map.num_ranks());
  const auto gpus_per_node = *rc::gen::element<int64_t>(1, 2, 4, 8);
  const std::vector<int64_t> group = map.gradient_group(rank);
  RC_ASSERT(static_cast<int64_t>(group.size()) == map.size(Axis::kDp) * map.size(Axis::kCp));
  for (const int64_t other : group) {
    RC_ASSERT(map.index(Axis::kTp, other) == map.index(Axis::kTp, rank));
    RC_ASSERT(map.index(Axis::kPp, other) == map.index(Axis::kPp, rank));
  }
  RC_ASSERT(map.gradient_placement(gpus_per_node).size == static_cast<int64_t>(group.size()));
}

TEST(RankMap, OrdersRanksAsInThePaper) {
  const RankMap map(mesh(2, 2, 2));  // arange(8).reshape(pp, dp, tp)
  EXPECT_THAT(map.group(Axis::kTp, 0), ElementsAre(0, 1));
  EXPECT_THAT(map.group(Axis::kDp, 0), ElementsAre(0, 2));
  EXPECT_THAT(map.group(Axis::kPp, 0), ElementsAre(0, 4));
}

TEST(RankMap, PutsDpSlowestWhereTheEngineDoes) {
  spec::Engine engine;
  engine.rank_order_tp_cp_dp_pp = false;
  const RankMap map(mesh(2, 2, 2), engine);
  EXPECT_THAT(map.group(Axis::kPp, 0), ElementsAre(0, 2));
  EXPECT_THAT(map.group(Axis::kDp, 0), ElementsAre(0, 4));
}

TEST(RankMap, PlacesGroupsOnNodes) {
  const RankMap map(mesh(16, 2, 4));
  EXPECT_EQ(map.placement(Axis::kTp, 8), (Placement{2, 1, 2, 1}));
  EXPECT_EQ(map.placement(Axis::kDp, 8), (Placement{16, 2, 4, 4}));
  EXPECT_EQ(map.placement(Axis::kPp, 8), (Placement{4, 32, 1, 4}));
  EXPECT_EQ(RankMap(mesh(4, 16, 1)).placement(Axis::kTp, 8), (Placement{16, 1, 8, 2}));
}

TEST(RankMap, PricesAMillionRanksWithoutListingThem) {
  const RankMap map(mesh(31'250, 8, 4));
  EXPECT_EQ(map.placement(Axis::kDp, 8), (Placement{31'250, 8, 1, 31'250}));
}

}  // namespace
}  // namespace layline::layout
