#include "layline/trainer/optimizer/gradient_reducer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/optimizer/segments.h"
#include "mesh.h"
#include "recording_group.h"
#include "toy.h"

namespace layline::trainer::optimizer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const base::RunError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// A rank of two replicas whose groups only write down what they are asked.
struct Recorded {
  explicit Recorded(Toy& toy, int zero = 1, int64_t dp_size = 2)
      : dp("dp", dp_size, events),
        tp("tp", 2, events),
        replicas("kv", 2, events),
        tied("tied", 2, events),
        buffers({toy.groups()}, dp_size, at::kFloat),
        reducer(buffers, {dp, tp, replicas, &tied}, zero) {}
  std::vector<std::string> events;
  RecordingGroup dp, tp, replicas, tied;
  FlatBuffers buffers;
  GradientReducer reducer;
};

TEST(GradientReducer, StartsABucketWithItsLastGradientBeforeTheBackwardPassEnds) {
  Toy toy;
  const Parameter& a = toy.add("a", {32}, 0);
  const Parameter& b = toy.add("b", {32}, 0);
  const Parameter& c = toy.add("c", {32}, 1);
  Recorded recorded(toy);
  for (int step = 0; step < 2; ++step) {
    recorded.events.clear();
    recorded.reducer.begin_step(2);
    for (const Parameter* parameter : {&c, &b, &a}) parameter->on_gradient();
    EXPECT_THAT(recorded.events, IsEmpty());  // one micro-batch is still to come
    c.on_gradient();
    EXPECT_THAT(recorded.events, ElementsAre("dp reduce_scatter_async 32"));
    b.on_gradient();
    EXPECT_EQ(recorded.events.size(), 1u);
    a.on_gradient();
    EXPECT_THAT(recorded.events, ElementsAre("dp reduce_scatter_async 32", "dp reduce_scatter_async 64"));
    recorded.reducer.finish();
    EXPECT_THAT(recorded.events,
                ElementsAre("dp reduce_scatter_async 32", "dp reduce_scatter_async 64",
                            "waited for dp reduce_scatter_async 64", "waited for dp reduce_scatter_async 32"));
  }
}

TEST(GradientReducer, ReducesAllOfABucketWithZero0AndNothingWithOneReplica) {
  Toy toy;
  const Parameter& w = toy.add("w", {32}, 0);
  {
    Recorded recorded(toy, 0);
    recorded.reducer.begin_step(1);
    w.on_gradient();
    EXPECT_THAT(recorded.events, ElementsAre("dp all_reduce_async 32"));
    recorded.reducer.finish();
  }
  Recorded alone(toy, 1, 1);
  alone.reducer.begin_step(1);
  w.on_gradient();
  alone.reducer.finish();
  EXPECT_THAT(alone.events, IsEmpty());
}

TEST(GradientReducer, WaitsForBothUsesOfATiedWeight) {
  Toy toy;
  Parameter& w = toy.add("w", {32}, 0);
  w.uses = 2;
  Recorded recorded(toy);
  recorded.reducer.begin_step(1);
  w.on_gradient();
  EXPECT_THAT(recorded.events, IsEmpty());
  w.on_gradient();
  EXPECT_EQ(recorded.events.size(), 1u);
  recorded.reducer.finish();
}

TEST(GradientReducer, SumsOverOtherGroupsInOneCollectiveEachAfterThatOfReplicas) {
  Toy toy;
  toy.add("n0", {16}, 5).sharding = TensorSharding::kPartial;
  toy.add("n1", {16}, 5).sharding = TensorSharding::kPartial;
  for (const char* layer : {"0", "1"}) {
    ParameterGroup& qkv = toy.add_group({{"q", {2, 8}}, {std::string("k") + layer, {1, 8}}, {"v", {1, 8}}}, 6);
    qkv.parameters[1]->sharding = qkv.parameters[2]->sharding = TensorSharding::kShardedReplicas;
  }
  toy.add("embed", {4, 8}, 7).is_tied = true;
  Recorded recorded(toy, 0);
  recorded.reducer.begin_step(1);
  for (const Parameter& parameter : toy.parameters()) parameter.on_gradient();
  recorded.events.clear();
  recorded.reducer.finish();
  EXPECT_THAT(recorded.events, ElementsAre("waited for dp all_reduce_async 32", "waited for dp all_reduce_async 64",
                                           "waited for dp all_reduce_async 32", "tp all_reduce 32", "kv all_reduce 32",
                                           "tied all_reduce 32"));
}

TEST(GradientReducer, NamesAParameterWithTooFewOrTooManyGradientsAndTheCounts) {
  Toy toy;
  const Parameter& a = toy.add("model.norm.weight", {32}, 0);
  Parameter& b = toy.add("model.embed_tokens.weight", {32}, 0);
  b.uses = 2;
  Recorded recorded(toy);
  recorded.reducer.begin_step(3);
  for (int i = 0; i < 3; ++i) a.on_gradient();
  for (int i = 0; i < 5; ++i) b.on_gradient();
  EXPECT_EQ(message_of([&] { recorded.reducer.finish(); }),
            "the gradient of model.embed_tokens.weight: 5 additions in a step of 3 micro-batches; 6 are expected");
  EXPECT_EQ(message_of([&] { a.on_gradient(); }),
            "the gradient of model.norm.weight: 4 additions in a step of 3 micro-batches; 3 are expected");
}

TEST(GradientReducer, BeginsAStepWithZerosInTheSamePlace) {
  Toy toy;
  const Parameter& w = toy.add("w", {5, 3}, 0);
  Recorded recorded(toy);
  const void* before = w.main_grad.data_ptr();
  toy.groups()[0]->main_grad.fill_(3);
  recorded.reducer.begin_step(1);
  EXPECT_TRUE(w.main_grad.defined() && w.main_grad.data_ptr() == before);
  EXPECT_EQ(recorded.buffers.buckets()[0].gradients.abs().sum().item<double>(), 0);
}

TEST(GradientReducer, LeavesNoCallbackBehind) {
  Toy toy;
  toy.add("w", {4}, 0);
  {
    const Recorded recorded(toy);
  }
  EXPECT_FALSE(toy["w"].on_gradient);
}

TEST(MainGradients, OfBf16WeightsAddUpSixHundredOnesExactly) {
  Toy toy;
  const Parameter& w = toy.add("w", {7, 9}, 0);
  FlatBuffers buffers({toy.groups()}, 2, at::kBFloat16);
  const at::Tensor ones = at::ones({7, 9}, at::kBFloat16);
  for (int i = 0; i < 600; ++i) kernels::accumulate_(w.main_grad, ones);
  EXPECT_TRUE(w.main_grad.eq(600).all().item<bool>());
}

// What rank `dp`, `tp` of a mesh adds; another number for each.
at::Tensor contribution(const Parameter& parameter, int64_t dp, int64_t tp, int64_t pp = 0) {
  return made_up(parameter, dp * 100 + tp * 10 + pp);
}

// The part of a whole parameter that this rank holds reduced, against the same part of what is expected.
void expect_reduced(const FlatBuffers& buffers, const GradientReducer& reducer,
                    const std::function<at::Tensor(const Parameter&)>& expected) {
  for (size_t i = 0; i < buffers.buckets().size(); ++i) {
    const Bucket& bucket = buffers.buckets()[i];
    const at::Tensor shard = reducer.shard(i);
    for_each_segment(bucket, reducer.shard_offset(bucket), shard.numel(), [&](const Segment& segment) {
      const at::Tensor found = shard.narrow(0, segment.in_range, segment.length);
      const at::Tensor wanted = expected(*segment.parameter).view(-1).narrow(0, segment.in_parameter, segment.length);
      EXPECT_TRUE(at::allclose(found, wanted, 0, 1e-14)) << segment.parameter->name;
    });
  }
}

class Reduction : public testing::TestWithParam<int> {};  // ZeRO stage
INSTANTIATE_TEST_SUITE_P(Zero, Reduction, testing::Values(0, 1));

TEST_P(Reduction, SumsPartialGradientsOverTpAndReplicasAndOthersOverReplicasOnly) {
  run_on_mesh({.tp = 2, .dp = 3}, [](Rank& rank) {
    Toy toy;
    toy.add("matrix", {7, 3}, 0).sharding = TensorSharding::kSharded;
    toy.add("norm", {13}, 1).sharding = TensorSharding::kPartial;
    toy.add("other_norm", {13}, 1).sharding = TensorSharding::kPartial;
    toy.add("replicated", {5}, 2);
    FlatBuffers buffers({toy.groups()}, 3, at::kDouble);
    GradientReducer reducer(buffers, rank.groups(), GetParam());
    for (int step = 0; step < 2; ++step) {
      reducer.begin_step(2);
      for (int m = 0; m < 2; ++m) toy.backward([&](const Parameter& p) { return contribution(p, rank.dp, rank.tp); });
      reducer.finish();
      expect_reduced(buffers, reducer, [&](const Parameter& p) {
        at::Tensor sum = at::zeros(p.local_shape, at::kDouble);
        for (int64_t dp = 0; dp < 3; ++dp) {
          for (int64_t tp = 0; tp < 2; ++tp) {
            if (p.sharding == TensorSharding::kPartial || tp == rank.tp) sum += 2 * contribution(p, dp, tp);
          }
        }
        return sum;
      });
    }
  });
}

TEST_P(Reduction, SumsKeyValueHeadsOverTheirReplicasAndLeavesQueriesAlone) {
  run_on_mesh({.tp = 4, .dp = 2, .num_replicas = 2}, [](Rank& rank) {
    Toy toy;
    for (const std::string layer : {"0", "1"}) {
      ParameterGroup& qkv = toy.add_group({{"q" + layer, {5, 3}}, {"k" + layer, {2, 3}}, {"v" + layer, {2, 3}}}, 0);
      qkv.parameters[1]->sharding = qkv.parameters[2]->sharding = TensorSharding::kShardedReplicas;
    }
    FlatBuffers buffers({toy.groups()}, 2, at::kDouble);
    GradientReducer reducer(buffers, rank.groups(), GetParam());
    reducer.begin_step(1);
    toy.backward([&](const Parameter& p) { return contribution(p, rank.dp, rank.tp); });
    reducer.finish();
    expect_reduced(buffers, reducer, [&](const Parameter& p) {
      const bool has_replicas = p.sharding == TensorSharding::kShardedReplicas;
      at::Tensor sum = at::zeros(p.local_shape, at::kDouble);
      for (int64_t dp = 0; dp < 2; ++dp) {
        for (int64_t tp = 0; tp < 4; ++tp) {
          if (tp == rank.tp || (has_replicas && tp / 2 == rank.tp / 2)) sum += contribution(p, dp, tp);
        }
      }
      return sum;
    });
  });
}

TEST_P(Reduction, GivesATiedEmbeddingTheSameBitsOnBothStages) {
  std::vector<at::Tensor> reduced(6);
  run_on_mesh({.dp = 2, .pp = 3}, [&](Rank& rank) {
    Toy toy;
    toy.add("layer", {4 + rank.pp, 3}, 0);
    if (rank.pp != 1) toy.add("embed", {11, 3}, 1 + rank.pp).is_tied = true;
    FlatBuffers buffers({toy.groups()}, 2, at::kFloat);
    GradientReducer reducer(buffers, rank.groups(), GetParam());
    reducer.begin_step(1);
    toy.backward([&](const Parameter& p) { return contribution(p, rank.dp, rank.tp, rank.pp); });
    reducer.finish();
    if (rank.pp == 1) return;
    at::Tensor& own = reduced[static_cast<size_t>(rank.pp * 2 + rank.dp)] = reducer.shard(1).clone();
    at::Tensor wanted = at::zeros({buffers.buckets()[1].size()}, at::kDouble);
    for (const int64_t pp : {0, 2}) {
      for (const int64_t dp : {0, 1}) wanted.narrow(0, 0, 33) += contribution(toy["embed"], dp, 0, pp).view(-1);
    }
    EXPECT_TRUE(at::allclose(own.to(at::kDouble), wanted.narrow(0, rank.dp * own.numel(), own.numel()), 1e-6, 1e-6));
  });
  EXPECT_TRUE(at::equal(reduced[0], reduced[4]));
  EXPECT_TRUE(at::equal(reduced[1], reduced[5]));
}

TEST(GradientReducer, NoticesReplicasThatStartBucketsInDifferentOrders) {
  if (!GradientReducer::kComparesOrder) GTEST_SKIP() << "release builds do not look";
  EXPECT_THAT(message_of([] {
                run_on_mesh({.dp = 2}, [](Rank& rank) {
                  Toy toy;
                  toy.add("a", {16}, 0);
                  toy.add("b", {16}, 1);
                  FlatBuffers buffers({toy.groups()}, 2, at::kFloat);
                  GradientReducer reducer(buffers, rank.groups(), 1);
                  reducer.begin_step(1);
                  toy[rank.dp == 0 ? "a" : "b"].on_gradient();
                  toy[rank.dp == 0 ? "b" : "a"].on_gradient();
                  reducer.finish();
                });
              }),
              HasSubstr("different orders"));
}

}  // namespace
}  // namespace layline::trainer::optimizer
