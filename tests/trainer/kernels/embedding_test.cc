#include "layline/trainer/kernels/embedding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace layline::trainer::kernels {
namespace {

class Embedding : public testing::TestWithParam<at::ScalarType> {};

TEST_P(Embedding, ReadsRowsAndZerosForThoseThatAreElsewhere) {
  const at::Tensor table = at::randn({5, 300}).to(GetParam());
  const at::Tensor rows = at::tensor({4, -1, 0, 4}, at::kLong).view({2, 2});
  const at::Tensor wanted = at::stack({table[4], at::zeros_like(table[0]), table[0], table[4]}).view({2, 2, 300});
  EXPECT_TRUE(at::equal(read_rows(table, rows), wanted));
}

TEST_P(Embedding, AddsToTheRowsThatWereRead) {
  const at::ScalarType wide = GetParam() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor dy = at::randn({4, 300}).to(GetParam());
  const at::Tensor gradient = at::ones({5, 300}, wide);
  add_to_rows_(gradient, at::tensor({4, -1, 0, 4}, at::kLong), dy);
  at::Tensor wanted = at::ones({5, 300}, wide);
  wanted.index_add_(0, at::tensor({4, 0, 4}, at::kLong), at::stack({dy[0], dy[2], dy[3]}).to(wide));
  EXPECT_TRUE(at::equal(gradient, wanted));
}

INSTANTIATE_TEST_SUITE_P(Types, Embedding, testing::Values(at::kBFloat16, at::kFloat, at::kDouble));

TEST(EmbeddingRows, BeyondTheTableAreRefused) {
  EXPECT_ANY_THROW(read_rows(at::ones({5, 3}), at::tensor({5}, at::kLong)));
}

}  // namespace
}  // namespace layline::trainer::kernels
