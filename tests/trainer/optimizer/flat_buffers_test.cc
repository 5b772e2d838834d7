#include "layline/trainer/optimizer/flat_buffers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "layline/trainer/optimizer/segments.h"
#include "toy.h"

namespace layline::trainer::optimizer {
namespace {

// Up to six groups of up to three matrices or vectors, in up to three buckets.
Toy random_toy() {
  Toy toy;
  const int num_groups = *rc::gen::inRange(1, 7);
  for (int g = 0; g < num_groups; ++g) {
    std::vector<std::pair<std::string, std::vector<int64_t>>> members;
    const bool is_matrix = *rc::gen::arbitrary<bool>();
    const int64_t width = *rc::gen::inRange<int64_t>(1, 9);
    const int num_members = *rc::gen::inRange(1, 4);
    for (int m = 0; m < num_members; ++m) {
      std::vector<int64_t> shape = {*rc::gen::inRange<int64_t>(1, 40)};
      if (is_matrix) shape.push_back(width);
      members.emplace_back(fmt::format("w{}.{}", g, m), shape);
    }
    toy.add_group(members, *rc::gen::inRange<int64_t>(0, 3));
  }
  return toy;
}

at::Tensor flat_group(const ParameterGroup& group, at::Tensor Parameter::* member) {
  std::vector<at::Tensor> tensors;
  for (const Parameter* parameter : group.parameters) tensors.push_back(parameter->*member);
  return at::cat(tensors, 0);
}

RC_GTEST_PROP(FlatBuffers, PlaceEveryGroupWithoutGapsAt64BytesInBucketsThatReplicasDivide, ()) {
  Toy toy = random_toy();
  const int64_t dp = *rc::gen::inRange<int64_t>(1, 6);
  const at::ScalarType dtype = *rc::gen::element(at::kBFloat16, at::kFloat, at::kDouble);
  FlatBuffers buffers({toy.groups()}, dp, dtype);

  int64_t key = 0;
  for (Parameter& parameter : toy.parameters()) {
    RC_ASSERT(parameter.value.sizes() == at::IntArrayRef(parameter.local_shape));
    RC_ASSERT(parameter.value.is_contiguous() && parameter.main_grad.is_contiguous());
    RC_ASSERT(parameter.value.scalar_type() == dtype);
    RC_ASSERT(parameter.main_grad.scalar_type() == (dtype == at::kDouble ? at::kDouble : at::kFloat));
    parameter.value.fill_(static_cast<double>(++key));
    parameter.main_grad.fill_(static_cast<double>(-key));
  }
  key = 0;  // what was written is still there: nothing overlaps
  double sum = 0;
  for (const Parameter& parameter : toy.parameters()) {
    ++key;
    RC_ASSERT(parameter.value.eq(static_cast<double>(key)).all().item<bool>());
    RC_ASSERT(parameter.main_grad.eq(static_cast<double>(-key)).all().item<bool>());
    sum += static_cast<double>(key * parameter.num_local());
  }
  for (const ParameterGroup* group : toy.groups()) {
    RC_ASSERT(at::equal(group->value, flat_group(*group, &Parameter::value)));
    RC_ASSERT(at::equal(group->main_grad, flat_group(*group, &Parameter::main_grad)));
    RC_ASSERT(reinterpret_cast<uintptr_t>(group->value.data_ptr()) % 64 == 0);
  }
  double found = 0;
  for (const Bucket& bucket : buffers.buckets()) {
    RC_ASSERT(bucket.size() * bucket.weights.element_size() % (64 * dp) == 0);
    RC_ASSERT(bucket.gradients.numel() == bucket.size());
    found += bucket.weights.sum(at::kDouble).item<double>();
  }
  RC_ASSERT(found == sum);  // gaps are zero
}

RC_GTEST_PROP(Segments, OfAllSharesTileEveryParameterOnce, ()) {
  Toy toy = random_toy();
  const int64_t dp = *rc::gen::inRange<int64_t>(1, 6);
  FlatBuffers buffers({toy.groups()}, dp, at::kDouble);
  for (const Bucket& bucket : buffers.buckets()) {
    const int64_t size = bucket.size() / dp;
    std::map<const Parameter*, int64_t> reached;
    for (int64_t rank = 0; rank < dp; ++rank) {
      int64_t end = 0, length = 0, run_length = 0;
      for_each_segment(bucket, rank * size, size, [&](const Segment& segment) {
        RC_ASSERT(segment.in_parameter == reached[segment.parameter]);
        RC_ASSERT(segment.in_range >= end && segment.length > 0);
        const at::Tensor view = bucket.weights.narrow(0, rank * size + segment.in_range, segment.length);
        RC_ASSERT(view.is_alias_of(segment.parameter->value));
        RC_ASSERT(view.storage_offset() == segment.parameter->value.storage_offset() + segment.in_parameter);
        reached[segment.parameter] += segment.length;
        end = segment.in_range + segment.length;
        length += segment.length;
      });
      const auto decays = [](const Parameter& parameter) { return parameter.decays; };
      bool last = false, is_first = true;
      for_each_run(bucket, rank * size, size, decays, [&](const Run<bool>& run) {
        RC_ASSERT(is_first || run.kind != last);
        last = run.kind, is_first = false;
        run_length += run.length;
      });
      RC_ASSERT(run_length >= length && run_length <= size);
    }
    for (const PlacedParameter& placed : bucket.parameters) {
      RC_ASSERT(reached[placed.parameter] == placed.parameter->num_local());
    }
  }
}

TEST(FlatBuffers, GiveATiedEmbeddingTheSameBucketOnBothStages) {
  Toy first, last;
  first.add("embed", {97, 5}, 7).is_tied = true;
  first.add("layer", {3, 5}, 0);
  last.add("layer", {11, 5}, 0);
  last.add("norm", {5}, 0);
  last.add("embed", {97, 5}, 1).is_tied = true;
  FlatBuffers of_first({first.groups()}, 3, at::kBFloat16), of_last({last.groups()}, 3, at::kBFloat16);
  ASSERT_EQ(of_first.buckets().size(), 2u);
  ASSERT_EQ(of_last.buckets().size(), 2u);
  EXPECT_EQ(of_first.buckets()[1].size(), of_last.buckets()[1].size());
  EXPECT_EQ(of_first.buckets()[1].parameters[0].offset, of_last.buckets()[1].parameters[0].offset);
}

TEST(FlatBuffers, KeepTheBucketsOfVirtualStagesApart) {
  Toy chunk_0, chunk_1;
  chunk_0.add("a", {4});
  chunk_1.add("b", {4});
  FlatBuffers buffers({chunk_0.groups(), chunk_1.groups()}, 1, at::kFloat);
  EXPECT_EQ(buffers.buckets().size(), 2u);
}

TEST(FlatBuffers, ExistOnTheMetaDeviceToo) {
  Toy toy;
  toy.add("w", {1 << 20, 1 << 14});
  FlatBuffers buffers({toy.groups()}, 8, at::TensorOptions(at::kBFloat16).device(at::kMeta));
  EXPECT_TRUE(toy["w"].value.is_meta() && toy["w"].main_grad.is_meta());
  EXPECT_TRUE(buffers.exchange_device().is_cpu());
}

}  // namespace
}  // namespace layline::trainer::optimizer
