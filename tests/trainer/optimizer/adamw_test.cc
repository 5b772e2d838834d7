#include "layline/trainer/optimizer/adamw.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "layline/trainer/optimizer/norm.h"
#include "mesh.h"
#include "toy.h"

namespace layline::trainer::optimizer {
namespace {

using Weights = std::map<std::string, at::Tensor>;

OptimizerOptions options() {
  OptimizerOptions options;
  options.learning_rate = 0.01;
  options.weight_decay = 0.3;
  options.clip = 0.5;
  return options;
}

// Odd sizes, parameters smaller than a share and larger than one, matrices between vectors.
Toy make_toy() {
  Toy toy;
  toy.add("norm", {3}, 0);
  toy.add_group({{"q", {5, 7}}, {"k", {1, 7}}, {"v", {1, 7}}}, 0);
  toy.add("bias", {1}, 0);
  toy.add("up", {9, 31}, 1);
  toy.add("embed", {13, 3}, 2);
  toy.add("final_norm", {17}, 1);
  return toy;
}

// What the micro-batches of replica `dp` of `size` bring at a step; all replicas together always the same.
at::Tensor gradient(const Parameter& parameter, int64_t step, int64_t dp, int64_t size) {
  return made_up(parameter, step) / static_cast<double>(size) * (1.0 + (dp == 0) - (dp == size - 1));
}

struct Training {
  int64_t dp = 1;
  int zero = 1;
  at::ScalarType dtype = at::kDouble;
  int64_t first = 1, last = 5;  // steps
};

// A part of a parameter's optimizer state.
struct Part {
  int64_t offset;
  at::Tensor master, exp_avg, exp_avg_sq;
};
using Checkpoint = std::map<std::string, std::vector<Part>>;

void save(const ShardedAdamW& adamw, Checkpoint& checkpoint) {
  adamw.for_each_state([&](const OptimizerState& state) {
    checkpoint[state.parameter->name].push_back(
        {state.offset, state.master.clone(), state.exp_avg.clone(), state.exp_avg_sq.clone()});
  });
}

void restore(ShardedAdamW& adamw, const Checkpoint& checkpoint) {
  adamw.for_each_state([&](const OptimizerState& state) {
    const auto whole = [&](at::Tensor Part::* member) {
      at::Tensor all = at::empty({state.parameter->num_local()}, state.exp_avg.options());
      for (const Part& part : checkpoint.at(state.parameter->name)) {
        all.narrow(0, part.offset, part.master.numel()).copy_(part.*member);
      }
      return all.narrow(0, state.offset, state.master.numel());
    };
    at::Tensor master = state.master, exp_avg = state.exp_avg, exp_avg_sq = state.exp_avg_sq;
    master.copy_(whole(&Part::master));
    exp_avg.copy_(whole(&Part::exp_avg));
    exp_avg_sq.copy_(whole(&Part::exp_avg_sq));
  });
  adamw.masters_changed();
}

double gaps(const FlatBuffers& buffers) {
  double sum = 0;
  for (const Bucket& bucket : buffers.buckets()) {
    at::Tensor copy = bucket.weights.clone();
    for (const PlacedParameter& placed : bucket.parameters) {
      copy.narrow(0, placed.offset, placed.parameter->num_local()).zero_();
    }
    sum += copy.abs().sum(at::kDouble).item<double>();
  }
  return sum;
}

// Trains and returns rank 0's weights, the same on all replicas. Starts from `from` and leaves its state in `to`.
Weights train(const Training& training, const Checkpoint* from = nullptr, Checkpoint* to = nullptr) {
  std::mutex mutex;
  std::vector<Weights> found;
  run_on_mesh({.dp = training.dp}, [&](Rank& rank) {
    Toy toy = make_toy();
    FlatBuffers buffers({toy.groups()}, training.dp, training.dtype);
    GradientReducer reducer(buffers, rank.groups(), training.zero);
    ShardedAdamW adamw(buffers, *rank.dp_group, training.zero, options());
    for (Parameter& parameter : toy.parameters()) parameter.value.copy_(made_up(parameter));
    adamw.weights_changed();
    if (from != nullptr) restore(adamw, *from);
    for (int64_t step = training.first; step <= training.last; ++step) {
      reducer.begin_step(1);
      toy.backward([&](const Parameter& p) { return gradient(p, step, rank.dp, training.dp); });
      reducer.finish();
      const double norm = global_norm(buffers, reducer, *rank.world, step);
      adamw.step(reducer, {step, learning_rate(options(), step, 10), clip_factor(norm, options().clip)});
    }
    const std::lock_guard lock(mutex);
    EXPECT_EQ(gaps(buffers), 0);
    if (to != nullptr) save(adamw, *to);
    Weights& weights = found.emplace_back();
    for (const Parameter& parameter : toy.parameters()) weights[parameter.name] = parameter.value.clone();
  });
  for (const Weights& weights : found) {
    for (const auto& [name, value] : weights) EXPECT_TRUE(at::equal(value, found[0][name])) << name;
  }
  return found[0];
}

// torch.optim.AdamW and clip_grad_norm_ as their documentation has them, over whole parameters in fp64.
Weights plain_adamw(int64_t num_steps) {
  Toy toy = make_toy();
  Weights weights, exp_avg, exp_avg_sq;
  for (const Parameter& p : toy.parameters()) {
    weights[p.name] = made_up(p);
    exp_avg[p.name] = exp_avg_sq[p.name] = at::zeros(p.local_shape, at::kDouble);
  }
  const OptimizerOptions o = options();
  for (int64_t step = 1; step <= num_steps; ++step) {
    double squares = 0;
    for (const Parameter& p : toy.parameters()) squares += made_up(p, step).square().sum().item<double>();
    const double scale = std::min(1.0, o.clip / (std::sqrt(squares) + 1e-6));
    const double rate = learning_rate(o, step, 10);
    for (const Parameter& p : toy.parameters()) {
      const at::Tensor g = made_up(p, step) * scale;
      at::Tensor& w = weights[p.name];
      at::Tensor& m = exp_avg[p.name];
      at::Tensor& v = exp_avg_sq[p.name];
      if (p.local_shape.size() > 1) w = w - rate * o.weight_decay * w;
      m = o.beta1 * m + (1 - o.beta1) * g;
      v = o.beta2 * v + (1 - o.beta2) * g * g;
      const auto n = static_cast<double>(step);
      const at::Tensor denominator = (v / (1 - std::pow(o.beta2, n))).sqrt() + o.epsilon;
      w = w - rate * (m / (1 - std::pow(o.beta1, n))) / denominator;
    }
  }
  return weights;
}

TEST(ShardedAdamW, TrainsAsAPlainLoopOverWholeParametersDoesWithAnyNumberOfReplicas) {
  const Weights expected = plain_adamw(5);
  for (int64_t dp = 1; dp <= 4; ++dp) {
    for (const int zero : {0, 1}) {
      const Weights found = train({.dp = dp, .zero = zero});
      for (const auto& [name, value] : expected) {
        EXPECT_TRUE(at::allclose(found.at(name), value, 1e-14, 1e-14))
            << name << ", dp " << dp << ", zero " << zero << ": "
            << (found.at(name) - value).abs().max().item<double>();
      }
    }
  }
}

TEST(ShardedAdamW, GivesTheSameBitsWithZero0AndZero1) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat, at::kDouble}) {
    // Four replicas, so that 1/dp is exact and the norm's sums are over the same shares.
    const Weights a = train({.dp = 4, .zero = 0, .dtype = dtype}), b = train({.dp = 4, .zero = 1, .dtype = dtype});
    for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << name << " " << toString(dtype);
  }
}

TEST(ShardedAdamW, StaysNearTheFp64RunInFp32AndBf16) {
  const Weights expected = plain_adamw(5);
  const std::pair<at::ScalarType, double> precisions[] = {{at::kFloat, 1e-6}, {at::kBFloat16, 1e-2}};
  for (const auto& [dtype, tolerance] : precisions) {
    const Weights found = train({.dp = 3, .dtype = dtype});
    for (const auto& [name, value] : expected) {
      EXPECT_TRUE(at::allclose(found.at(name).to(at::kDouble), value, tolerance, tolerance)) << name;
    }
  }
}

TEST(ShardedAdamW, ContinuesFromItsStateWithAnotherNumberOfReplicas) {
  for (const at::ScalarType dtype : {at::kDouble, at::kBFloat16}) {
    Checkpoint checkpoint;
    train({.dp = 3, .zero = 1, .dtype = dtype, .last = 3}, nullptr, &checkpoint);
    const Weights expected = train({.dp = 1, .dtype = dtype});
    for (const Training& rest : {Training{.dp = 2, .zero = 1, .dtype = dtype, .first = 4},
                                 Training{.dp = 4, .zero = 0, .dtype = dtype, .first = 4}}) {
      const Weights found = train(rest, &checkpoint);
      for (const auto& [name, value] : expected) {
        const double tolerance = dtype == at::kDouble ? 1e-13 : 1e-2;
        EXPECT_TRUE(at::allclose(found.at(name), value, tolerance, tolerance)) << name << ", dp " << rest.dp;
      }
    }
  }
}

// Restoring a state is exact: with the same number of replicas the run goes on bit by bit.
TEST(ShardedAdamW, ContinuesBitByBitFromItsOwnState) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    Checkpoint checkpoint;
    train({.dp = 3, .dtype = dtype, .last = 3}, nullptr, &checkpoint);
    const Weights expected = train({.dp = 3, .dtype = dtype}),
                  found = train({.dp = 3, .dtype = dtype, .first = 4}, &checkpoint);
    for (const auto& [name, value] : expected) EXPECT_TRUE(at::equal(found.at(name), value)) << name;
  }
}

TEST(ShardedAdamW, KeepsTheStateOfEveryElementOnce) {
  for (int64_t dp = 1; dp <= 4; ++dp) {
    Checkpoint checkpoint;
    train({.dp = dp, .last = 1}, nullptr, &checkpoint);
    Toy toy = make_toy();
    for (const Parameter& parameter : toy.parameters()) {
      at::Tensor count = at::zeros({parameter.num_local()});
      for (const Part& part : checkpoint[parameter.name]) count.narrow(0, part.offset, part.master.numel()) += 1;
      EXPECT_TRUE(count.eq(1).all().item<bool>()) << parameter.name << ", dp " << dp;
    }
  }
}

// One step on one rank with a gradient of zeros, or ones.
struct OneRank {
  explicit OneRank(
      at::ScalarType dtype, std::function<void(Toy&)> prepare = [](Toy&) {})
      : toy(make_toy()), groups(comm::make_thread_groups("one", 1, std::chrono::seconds(1))) {
    prepare(toy);
    buffers = std::make_unique<FlatBuffers>(std::vector<std::vector<ParameterGroup*>>{toy.groups()}, 1, dtype);
    comm::Group& one = *groups[0];
    reducer = std::make_unique<GradientReducer>(*buffers, ReductionGroups{one, one, one, nullptr}, 1);
    adamw = std::make_unique<ShardedAdamW>(*buffers, one, 1, options());
    for (Parameter& parameter : toy.parameters()) parameter.value.fill_(1);
    adamw->weights_changed();
  }
  void step(int64_t step, double rate, const std::function<at::Tensor(const Parameter&)>& gradient_of) {
    reducer->begin_step(1);
    toy.backward(gradient_of);
    reducer->finish();
    adamw->step(*reducer, {step, rate, 1});
  }
  Toy toy;
  std::vector<std::unique_ptr<comm::Group>> groups;
  std::unique_ptr<FlatBuffers> buffers;
  std::unique_ptr<GradientReducer> reducer;
  std::unique_ptr<ShardedAdamW> adamw;
};

at::Tensor constant(const Parameter& parameter, double value) {
  return at::full(parameter.local_shape, value, at::kDouble);
}

TEST(ShardedAdamW, DecaysMatricesOnly) {
  OneRank one(at::kDouble);
  for (int64_t step = 1; step <= 3; ++step) one.step(step, 0.1, [](const Parameter& p) { return constant(p, 0); });
  for (const Parameter& parameter : one.toy.parameters()) {
    const double expected = parameter.local_shape.size() > 1 ? std::pow(1 - 0.1 * options().weight_decay, 3) : 1;
    EXPECT_TRUE(at::allclose(parameter.value, constant(parameter, expected), 1e-15)) << parameter.name;
  }
}

// Each update is far below bf16's precision at one.
TEST(ShardedAdamW, LosesNoSmallUpdatesOfBf16Weights) {
  OneRank one(at::kBFloat16);
  for (int64_t step = 1; step <= 200; ++step) one.step(step, 1e-4, [](const Parameter& p) { return constant(p, 1); });
  EXPECT_NEAR(one.toy["norm"].value[0].item<double>(), 1 - 200 * 1e-4, 0.004);
}

TEST(ShardedAdamW, LeavesRowsOfAPaddedVocabularyExactlyZero) {
  OneRank one(at::kFloat, [](Toy& toy) {
    toy["embed"].global_shape[0] = 11;
    toy["embed"].padded_dim0 = 13;
  });
  at::Tensor table = one.toy["embed"].value;
  table.narrow(0, 11, 2).zero_();
  for (int64_t step = 1; step <= 3; ++step) {
    one.step(step, 0.1, [](const Parameter& p) {
      at::Tensor gradient = constant(p, 1);
      if (p.padded_dim0 > 0) gradient.narrow(0, 11, 2).zero_();
      return gradient;
    });
  }
  EXPECT_TRUE(table.narrow(0, 11, 2).eq(0).all().item<bool>());
  EXPECT_LT(table.narrow(0, 0, 11).max().item<double>(), 1);
}

}  // namespace
}  // namespace layline::trainer::optimizer
