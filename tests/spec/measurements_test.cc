#include "layline/spec/measurements.h"

#include <gtest/gtest.h>

namespace layline::spec {
namespace {

double at(const MeasuredTable& table, std::vector<double> sizes) { return table.at(sizes); }

TEST(MeasuredTable, IsExactAtItsPoints) {
  const MeasuredTable table{{{1, 4}, {10, 100}}, {1, 2, 3, 5}};
  EXPECT_DOUBLE_EQ(at(table, {1, 10}), 1);
  EXPECT_DOUBLE_EQ(at(table, {1, 100}), 2);
  EXPECT_DOUBLE_EQ(at(table, {4, 10}), 3);
  EXPECT_DOUBLE_EQ(at(table, {4, 100}), 5);
}

TEST(MeasuredTable, FollowsPowersBetweenItsPoints) {
  const MeasuredTable square{{{1, 16}}, {1, 256}};
  EXPECT_NEAR(at(square, {4}), 16, 1e-12);
  const MeasuredTable product{{{1, 8}, {2, 32}}, {2, 32, 16, 256}};
  EXPECT_NEAR(at(product, {3, 7}), 21, 1e-12);
}

TEST(MeasuredTable, IsFlatBelowAndInProportionBeyond) {
  const MeasuredTable table{{{10, 20}}, {3, 4}};
  EXPECT_DOUBLE_EQ(at(table, {1}), 3);
  EXPECT_DOUBLE_EQ(at(table, {60}), 12);
}

TEST(Measurements, GiveTheNearestNumberOfRanks) {
  Measurements all;
  for (const int ranks : {1, 2, 4}) all.by_ranks.push_back({ranks, 1, {}});
  EXPECT_EQ(all.nearest(1).num_ranks, 1);
  EXPECT_EQ(all.nearest(3).num_ranks, 4);
  EXPECT_EQ(all.nearest(100).num_ranks, 4);
}

}  // namespace
}  // namespace layline::spec
