#include "layline/trainer/kernels/rope.h"

#include <cmath>
#include <numbers>

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

// Pairs as complex numbers, multiplied by those of the table.
at::Tensor reference_rotation(const at::Tensor& x_BSND, const RopeTable& table, bool inverse) {
  const auto halves = x_BSND.to(at::kDouble).chunk(2, -1);
  const at::Tensor numbers = at::complex(halves[0].contiguous(), halves[1].contiguous());
  const int64_t length = x_BSND.size(1);
  at::Tensor turns = at::complex(table.cos_SD2.narrow(0, 0, length).to(at::kDouble),
                                 table.sin_SD2.narrow(0, 0, length).to(at::kDouble));
  if (inverse) turns = turns.conj();
  const at::Tensor turned = numbers * turns.unsqueeze(1);
  return at::cat({at::real(turned), at::imag(turned)}, -1);
}

TEST(Rope, RotatesPairsOfHalves) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const int64_t head_size : {2, 4, 6, 16, 22, 32, 64, 80, 96, 128, 130}) {
      SCOPED_TRACE(testing::Message() << dtype << " head size " << head_size);
      const RopeTable table = make_rope_table(40, head_size, {}, dtype);
      const at::Tensor x = random({2, 33, 3, head_size}, dtype, 1);
      for (const bool inverse : {false, true}) {
        const at::Tensor expected = reference_rotation(x, table, inverse);
        with_each_instruction_set([&] {
          const at::Tensor y = x.clone();
          rope_(y, table, inverse);
          expect_rounded_once(y, expected);
        });
      }
    }
  }
}

TEST(Rope, TurnsSlicesOfAJointProjectionAndNothingElse) {
  const int64_t head_size = 24;
  const RopeTable table = make_rope_table(9, head_size, {}, at::kFloat);
  for (const bool batch_first : {true, false}) {
    const at::Tensor joint =
        batch_first ? random({2, 9, 5 * head_size}, at::kFloat, 1) : random({9, 2, 5 * head_size}, at::kFloat, 1);
    const at::Tensor before = joint.clone();
    const auto heads = [&](const at::Tensor& all, int64_t first, int64_t count) {
      const at::Tensor batch = batch_first ? all : all.transpose(0, 1);
      return batch.narrow(2, first * head_size, count * head_size).unflatten(2, {count, head_size});
    };
    rope_(heads(joint, 1, 3), table, false);
    expect_same_bits(heads(joint, 0, 1), heads(before, 0, 1));
    expect_same_bits(heads(joint, 4, 1), heads(before, 4, 1));
    expect_rounded_once(heads(joint, 1, 3), reference_rotation(heads(before, 1, 3), table, false));
  }
}

// Meta's weights are for a rotation of neighbours; Hugging Face's, which are read here, have their rows permuted so
// that a rotation of halves gives the same scores (convert_llama_weights_to_hf.py of transformers).
TEST(Rope, OfPermutedRowsGivesTheScoresOfMetasLayout) {
  const int64_t S = 9, N = 2, D = 8, hidden = 12;
  const RopeTable table = make_rope_table(S, D, {}, at::kDouble);
  const at::Tensor turns = at::complex(table.cos_SD2, table.sin_SD2);  // [S, D/2]
  const auto metas = [&](const at::Tensor& x_SND) {
    const at::Tensor pairs = x_SND.unflatten(2, {D / 2, 2});
    const at::Tensor turned =
        at::complex(pairs.select(3, 0).contiguous(), pairs.select(3, 1).contiguous()) * turns.unsqueeze(1);
    return at::stack({at::real(turned), at::imag(turned)}, 3).flatten(2);
  };
  const auto permuted = [&](const at::Tensor& weight) {
    return weight.view({N, D / 2, 2, hidden}).transpose(1, 2).reshape({N * D, hidden});
  };
  const auto scores = [](const at::Tensor& q_SND, const at::Tensor& k_SND) {
    return at::matmul(q_SND.transpose(0, 1), k_SND.permute({1, 2, 0}));
  };
  const at::Tensor x = random({S, hidden}, at::kDouble, 1), q = random({N * D, hidden}, at::kDouble, 2),
                   k = random({N * D, hidden}, at::kDouble, 3);
  const auto heads = [&](const at::Tensor& weight) { return at::linear(x, weight).view({S, N, D}); };
  const auto ours = [&](const at::Tensor& weight) {
    const at::Tensor rotated = heads(weight).unsqueeze(0).clone();
    rope_(rotated, table, false);
    return rotated.squeeze(0);
  };
  const at::Tensor wanted = scores(metas(heads(q)), metas(heads(k)));
  const auto error = [&](const at::Tensor& found) { return (found - wanted).abs().max().item<double>(); };
  EXPECT_LT(error(scores(ours(permuted(q)), ours(permuted(k)))), 1e-12);
  EXPECT_GT(error(scores(ours(q), ours(k))), 1e-3);
}

TEST(Rope, InverseRotatesBack) {
  const RopeTable table = make_rope_table(50, 32, {}, at::kDouble);
  const at::Tensor x = random({1, 50, 2, 32}, at::kDouble, 1);
  const at::Tensor y = x.clone();
  rope_(y, table, false);
  rope_(y, table, true);
  EXPECT_LT((y - x).abs().max().item<double>(), 1e-13);
}

// The scores of a query and a key depend on their distance alone.
TEST(Rope, ScoresDependOnDistance) {
  const RopeTable table = make_rope_table(20, 16, {}, at::kDouble);
  const at::Tensor q = random({16}, at::kDouble, 1).expand({1, 20, 1, 16}).clone();
  const at::Tensor k = random({16}, at::kDouble, 2).expand({1, 20, 1, 16}).clone();
  rope_(q, table, false);
  rope_(k, table, false);
  const at::Tensor scores = at::matmul(q[0].squeeze(1), k[0].squeeze(1).t());
  for (int64_t i = 1; i < 20; ++i) {
    EXPECT_NEAR(scores[i][i - 1].item<double>(), scores[1][0].item<double>(), 1e-12);
    EXPECT_NEAR(scores[19][19 - i].item<double>(), scores[i][0].item<double>(), 1e-12);
  }
}

TEST(RopeTable, HoldsPositionTimesFrequency) {
  const RopeTable table = make_rope_table(1000, 8, {.theta = 500000}, at::kDouble);
  for (const int64_t i : {0, 1, 3}) {
    const double angle = 999 * std::pow(500000.0, -2.0 * static_cast<double>(i) / 8);
    EXPECT_NEAR(table.cos_SD2[999][i].item<double>(), std::cos(angle), 1e-12);
    EXPECT_NEAR(table.sin_SD2[999][i].item<double>(), std::sin(angle), 1e-12);
  }
}

// With Llama 3.1's numbers: wavelengths below 8192 / 4 stay, above 8192 / 1 are divided by 8.
TEST(RopeTable, ScalesLowFrequenciesAsLlama3) {
  const RopeOptions plain = {.theta = 500000};
  const RopeOptions scaled = {.theta = 500000, .llama3 = Llama3RopeScaling{}};
  const at::Tensor before = at::asin(make_rope_table(2, 128, plain, at::kDouble).sin_SD2[1]);
  const at::Tensor after = at::asin(make_rope_table(2, 128, scaled, at::kDouble).sin_SD2[1]);
  const at::Tensor ratio = before / after;
  for (int64_t i = 1; i < 64; ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(500000.0, static_cast<double>(i) / 64);
    const double smooth = (8192 / wavelength - 1) / 3;
    const double expected = wavelength < 2048 ? 1 : wavelength > 8192 ? 8 : 1 / ((1 - smooth) / 8 + smooth);
    EXPECT_NEAR(ratio[i].item<double>(), expected, 1e-6) << i;
  }
}

TEST(RopeTable, DividesAllFrequenciesWhenLinear) {
  const RopeTable table = make_rope_table(9, 8, {.linear_factor = 4}, at::kDouble);
  const RopeTable plain = make_rope_table(9, 8, {}, at::kDouble);
  EXPECT_LT((table.sin_SD2[8] - plain.sin_SD2[2]).abs().max().item<double>(), 1e-14);
}

TEST(Rope, RefusesATableThatIsTooShort) {
  const RopeTable table = make_rope_table(4, 8, {}, at::kFloat);
  EXPECT_THROW(rope_(random({1, 5, 1, 8}, at::kFloat, 1), table, false), c10::Error);
  EXPECT_THROW(rope_(random({1, 4, 1, 16}, at::kFloat, 1), table, false), c10::Error);
  EXPECT_THROW(rope_(random({1, 4, 1, 8}, at::kDouble, 1), table, false), c10::Error);
}

}  // namespace
}  // namespace layline::trainer::kernels::test
