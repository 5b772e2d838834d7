#include "layline/trainer/optimizer/norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "layline/base/error.h"
#include "mesh.h"
#include "toy.h"

namespace layline::trainer::optimizer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The norm on every rank, which must be the same everywhere, bit by bit.
class Norms {
 public:
  void add(double norm) {
    const std::lock_guard lock(mutex_);
    norms_.insert(norm);
  }
  double value() const {
    EXPECT_EQ(norms_.size(), 1u);
    return *norms_.begin();
  }

 private:
  std::mutex mutex_;
  std::set<double> norms_;
};

// A step with these gradients on this rank; returns the norm.
double norm_of(Rank& rank, Toy& toy, int zero, const std::function<at::Tensor(const Parameter&)>& gradient_of,
               at::ScalarType dtype = at::kDouble, int64_t step = 1) {
  FlatBuffers buffers({toy.groups()}, rank.dp_group->size(), dtype);
  GradientReducer reducer(buffers, rank.groups(), zero);
  reducer.begin_step(1);
  toy.backward(gradient_of);
  reducer.finish();
  return global_norm(buffers, reducer, *rank.world, step);
}

struct Sharing {
  const char* name;
  Mesh mesh;
  int zero;
};
void PrintTo(const Sharing& sharing, std::ostream* out) { *out << sharing.name; }

class Norm : public testing::TestWithParam<Sharing> {};
INSTANTIATE_TEST_SUITE_P(Meshes, Norm,
                         testing::Values(Sharing{"alone", {}, 1}, Sharing{"tp2", {.tp = 2}, 1},
                                         Sharing{"dp3_zero0", {.dp = 3}, 0}, Sharing{"dp3_zero1", {.dp = 3}, 1},
                                         Sharing{"pp2", {.pp = 2}, 1}, Sharing{"tp2_dp2_pp2", {2, 2, 2}, 1},
                                         Sharing{"tp2_dp2_pp2_zero0", {2, 2, 2}, 0}),
                         [](const auto& info) { return info.param.name; });

// One model on every mesh: a tied embedding, a row-parallel matrix, a norm that every tp rank holds and one whose
// gradient each tp rank has a part of. Embedding on the first stage, the rest on the last.
TEST_P(Norm, CountsEveryElementOnceHoweverTheModelIsShared) {
  const auto [name, mesh, zero] = GetParam();
  const at::Tensor embed = made_up("embed", {7, 4}), matrix = made_up("matrix", {6, 4});
  const at::Tensor norm = made_up("norm", {5}), partial = made_up("partial", {9});
  double squares = 0;
  for (const at::Tensor& tensor : {embed, matrix, norm, partial}) squares += tensor.square().sum().item<double>();

  Norms norms;
  run_on_mesh(mesh, [&, mesh = mesh, zero = zero](Rank& rank) {
    Toy toy;
    const bool is_first = rank.pp == 0, is_last = rank.pp == mesh.pp - 1;
    const int64_t padded = (7 + mesh.tp - 1) / mesh.tp * mesh.tp;
    if (is_first || mesh.pp > 1) {
      Parameter& table = toy.add("embed", {padded / mesh.tp, 4}, 9);
      table.is_tied = mesh.pp > 1;
      table.is_counted = is_first;
    }
    if (is_last) {
      toy.add("matrix", {6 / mesh.tp, 4}, 0).sharding = TensorSharding::kSharded;
      toy.add("norm", {5}, 1).is_counted = rank.tp == 0;
      Parameter& p = toy.add("partial", {9}, 1);
      p.is_counted = rank.tp == 0;
      p.sharding = TensorSharding::kPartial;
    }
    norms.add(norm_of(rank, toy, zero, [&](const Parameter& p) {
      const double replicas = static_cast<double>(mesh.dp);
      if (p.name == "norm") return norm / replicas;
      if (p.name == "partial") return partial / replicas / mesh.tp;
      if (p.name == "matrix") return matrix.narrow(0, rank.tp * 6 / mesh.tp, 6 / mesh.tp) / replicas;
      const at::Tensor rows = at::cat({embed, at::zeros({padded - 7, 4}, at::kDouble)});
      const double stages = mesh.pp > 1 ? 2 : 1;
      return rows.narrow(0, rank.tp * padded / mesh.tp, padded / mesh.tp) / replicas / stages;
    }));
  });
  EXPECT_NEAR(norms.value(), std::sqrt(squares), 1e-14 * std::sqrt(squares));
}

// A tied weight counted on both stages would give 40 instead of 28.28.
TEST(Norm, OfATiedWeightThatGets20FromOneStageIsNot40) {
  Norms norms;
  run_on_mesh({.pp = 2}, [&](Rank& rank) {
    Toy toy;
    Parameter& table = toy.add("embed", {2}, 0);
    table.is_tied = true;
    table.is_counted = rank.pp == 0;
    norms.add(norm_of(rank, toy, 1, [&](const Parameter& p) {
      return at::full(p.local_shape, rank.pp == 0 ? 20.0 : 0.0, at::kDouble);
    }));
  });
  EXPECT_NEAR(norms.value(), 20 * std::sqrt(2.0), 1e-13);
}

TEST(Norm, OfBf16ModelsIsThatOfTheirFp32Gradients) {
  Norms norms;
  run_on_mesh({.dp = 2}, [&](Rank& rank) {
    Toy toy;
    toy.add("w", {1000}, 0);
    norms.add(norm_of(
        rank, toy, 1, [&](const Parameter& p) { return at::full(p.local_shape, 0.5, at::kDouble); }, at::kBFloat16));
  });
  EXPECT_DOUBLE_EQ(norms.value(), std::sqrt(1000.0));  // 31.6228; bf16 would say 31.625
}

TEST(ClipFactor, IsThatOfClipGradNorm) {
  EXPECT_DOUBLE_EQ(clip_factor(4, 1), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(clip_factor(1, 1), 1 / (1 + 1e-6));
  EXPECT_DOUBLE_EQ(clip_factor(0, 1), 1);
  EXPECT_DOUBLE_EQ(clip_factor(1e9, 0), 1);  // off
}

struct BadCase {
  Mesh mesh;
  int zero;
  int64_t rank;     // of the world, whose backward pass goes wrong
  int64_t element;  // of "b"
  double value;
  int64_t named;  // rank
};

class BadGradient : public testing::TestWithParam<BadCase> {};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
INSTANTIATE_TEST_SUITE_P(Cases, BadGradient,
                         testing::Values(BadCase{{}, 1, 0, 3, kNan, 0}, BadCase{{.dp = 3}, 1, 1, 0, kNan, 1},
                                         BadCase{{.dp = 3}, 1, 1, 20, kInf, 1}, BadCase{{.dp = 3}, 1, 1, 39, -kInf, 1},
                                         BadCase{{.dp = 3}, 0, 1, 20, kNan, 0},  // all replicas have the sum
                                         BadCase{{.tp = 2, .dp = 2}, 1, 3, 7, kNan, 3},
                                         BadCase{{.tp = 2, .dp = 2}, 1, 3, 39, kNan, 3},
                                         BadCase{{.dp = 2, .pp = 2}, 1, 2, 39, kNan, 2}));

TEST_P(BadGradient, EndsTheStepOnAllRanksWithTheSameNameOfStepRankAndParameter) {
  const BadCase& bad = GetParam();
  std::mutex mutex;
  std::multiset<std::string> messages;
  run_on_mesh(bad.mesh, [&](Rank& rank) {
    Toy toy;
    toy.add("stage" + std::to_string(rank.pp) + ".a", {9}, 0);
    toy.add("stage" + std::to_string(rank.pp) + ".b", {40}, 0);
    toy.add("stage" + std::to_string(rank.pp) + ".c", {9}, 1);
    for (Parameter& parameter : toy.parameters()) parameter.sharding = TensorSharding::kSharded;
    std::string message = "nothing was thrown";
    try {
      norm_of(
          rank, toy, bad.zero,
          [&](const Parameter& p) {
            at::Tensor gradient = made_up(p);
            if (rank.world_rank == bad.rank && p.name.back() == 'b') gradient[bad.element].fill_(bad.value);
            return gradient;
          },
          at::kFloat, 17);
    } catch (const base::RunError& error) {
      message = error.what();
    }
    const std::lock_guard lock(mutex);
    messages.insert(message);
  });
  const std::string expected = "step 17: the gradient of stage" +
                               std::to_string(bad.rank / (bad.mesh.tp * bad.mesh.dp)) + ".b on rank " +
                               std::to_string(bad.named) + " is not finite";
  EXPECT_EQ(messages.count(expected), static_cast<size_t>(bad.mesh.tp * bad.mesh.dp * bad.mesh.pp))
      << *messages.begin();
}

TEST(Norm, ThatOverflowsSaysSo) {
  std::string message;
  run_on_mesh({}, [&](Rank& rank) {
    Toy toy;
    toy.add("w", {4}, 0);
    try {
      norm_of(rank, toy, 1, [](const Parameter& p) { return at::full(p.local_shape, 1e200, at::kDouble); });
    } catch (const base::RunError& error) {
      message = error.what();
    }
  });
  EXPECT_THAT(message, AllOf(HasSubstr("step 1"), HasSubstr("not finite")));
}

}  // namespace
}  // namespace layline::trainer::optimizer
