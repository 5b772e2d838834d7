#include "layline/trainer/data/blend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/trainer/formats/files.h"

namespace layline::trainer::data::test {
namespace {

using formats::test::input_error;
using testing::HasSubstr;

std::vector<double> shares(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> shares;
  for (const double weight : weights) shares.push_back(weight / sum);
  return shares;
}

std::vector<size_t> drawn_sources(const std::vector<double>& weights, int64_t count) {
  const Blend blend(weights);
  std::vector<size_t> sources;
  for (int64_t i = 0; i < count; ++i) sources.push_back(blend.draw(i).source);
  return sources;
}

// As Megatron-LM's build_blending_indices does it, from its source text.
std::vector<size_t> megatron_sources(const std::vector<double>& weights, int64_t count) {
  const std::vector<double> share = shares(weights);
  std::vector<int64_t> drawn(weights.size());
  std::vector<size_t> sources;
  for (int64_t i = 0; i < count; ++i) {
    const double position = std::max(static_cast<double>(i), 1.0);
    size_t furthest = 0;
    double largest_error = share[0] * position - static_cast<double>(drawn[0]);
    for (size_t source = 1; source < share.size(); ++source) {
      const double error = share[source] * position - static_cast<double>(drawn[source]);
      if (error > largest_error) {
        largest_error = error;
        furthest = source;
      }
    }
    sources.push_back(furthest);
    ++drawn[furthest];
  }
  return sources;
}

std::vector<double> any_weights() {
  const auto num_sources = *rc::gen::inRange<size_t>(1, 12);
  const auto steps = *rc::gen::container<std::vector<int>>(num_sources, rc::gen::inRange(1, 1000));
  return {steps.begin(), steps.end()};
}

RC_GTEST_PROP(Blend, CountsEachSourceWithoutGaps, ()) {
  const std::vector<double> weights = any_weights();
  const Blend blend(weights);
  std::vector<int64_t> drawn(weights.size());
  for (int64_t i = 0; i < 2000; ++i) {
    const Blend::Draw draw = blend.draw(i);
    RC_ASSERT(draw.index == drawn.at(draw.source));
    ++drawn[draw.source];
  }
}

// Half a sample for the rounding of each source, and what the others' rounding moves.
RC_GTEST_PROP(Blend, KeepsEachSourceNearItsShareAtAnyTime, ()) {
  const std::vector<double> weights = any_weights();
  const std::vector<double> share = shares(weights);
  const Blend blend(weights);
  const auto first = *rc::gen::inRange<int64_t>(0, 10'000'000);
  for (int64_t i = first; i < first + 100; ++i) {
    const Blend::Draw draw = blend.draw(i);
    const double due = share[draw.source] * static_cast<double>(i);
    // What the weights lose when they are rounded to 2^-32 grows with the position.
    const double bound =
        1 + static_cast<double>(weights.size()) / 2 * share[draw.source] + 1e-9 * static_cast<double>(i);
    RC_ASSERT(std::abs(static_cast<double>(draw.index) - due) <= bound);
  }
}

TEST(Blend, MixesAsMegatronDoesToWithinOneSample) {
  for (const std::vector<double>& weights : std::vector<std::vector<double>>{
           {1}, {1, 1}, {1, 1, 1}, {0.7, 0.3}, {0.5, 0.3, 0.2}, {0.9, 0.1}, {0.05, 0.15, 0.8}, {1, 2, 3, 4}}) {
    const auto ours = drawn_sources(weights, 1000), theirs = megatron_sources(weights, 1000);
    std::vector<int64_t> ahead(weights.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      ++ahead[ours[i]];
      --ahead[theirs[i]];
      for (const int64_t difference : ahead) ASSERT_LE(std::abs(difference), 1) << i;
    }
  }
}

TEST(Blend, TakesTurnsWhenWeightsAreEqual) {
  EXPECT_THAT(drawn_sources({3, 3, 3}, 7), testing::ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(Blend, DependsOnRatiosOnly) {
  EXPECT_EQ(drawn_sources({0.25, 0.75}, 500), drawn_sources({1, 3}, 500));
  EXPECT_EQ(drawn_sources({1, 3}, 500), drawn_sources({5e307, 1.5e308}, 500));
  EXPECT_EQ(drawn_sources({1, 3}, 500), drawn_sources({1e-300, 3e-300}, 500));
}

TEST(Blend, NeverLeavesASourceOut) {
  const Blend blend({1, 1e-5});
  int64_t num_rare = 0;
  for (int64_t i = 0; i < 300'000; ++i) num_rare += blend.draw(i).source == 1 ? 1 : 0;
  EXPECT_EQ(num_rare, 3);
  EXPECT_EQ(Blend({1, 1e-30}).draw(int64_t{1} << 31).source, 1u);  // due half way through 2^32
}

TEST(Blend, GoesOnPastAnyRealLength) {
  const Blend blend({0.7, 0.2, 0.1});
  const int64_t last = (int64_t{1} << 60) - 1;
  std::vector<int64_t> indices;
  for (int64_t i = last - 999; i <= last; ++i) {
    const Blend::Draw draw = blend.draw(i);
    if (draw.source == 2) indices.push_back(draw.index);
  }
  EXPECT_NEAR(static_cast<double>(indices.size()), 100, 1);
  EXPECT_NEAR(static_cast<double>(indices.back()) / static_cast<double>(last), 0.1, 1e-9);
  for (size_t i = 1; i < indices.size(); ++i) EXPECT_EQ(indices[i], indices[i - 1] + 1);
}

TEST(Blend, WantsWeightsAboveZero) {
  EXPECT_THAT(input_error([] { Blend({}); }), HasSubstr("no source"));
  for (const double weight : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(input_error([weight] { Blend({1, weight}); }), HasSubstr("above 0")) << weight;
  }
}

}  // namespace
}  // namespace layline::trainer::data::test
