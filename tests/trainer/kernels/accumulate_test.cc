#include "layline/trainer/kernels/accumulate.h"

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

TEST(Accumulate, AddsInTheMainGradientsType) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1}, {15}, {3, 17}, {64}, {200, 301}}) {
      SCOPED_TRACE(testing::Message() << dtype << " " << at::IntArrayRef(shape));
      const at::Tensor main = random(shape, arithmetic_of(dtype), 1);
      const at::Tensor grad = random(shape, dtype, 2);
      with_each_instruction_set([&] {
        const at::Tensor sum = main.clone();
        accumulate_(sum, grad);
        expect_same_bits(sum, main + grad.to(main.scalar_type()));
      });
    }
  }
}

TEST(Accumulate, DoesNotStopGrowing) {
  const at::Tensor main = at::zeros({33}, at::kFloat);
  for (int i = 0; i < 600; ++i) accumulate_(main, at::ones({33}, at::kBFloat16));
  EXPECT_TRUE((main == 600).all().item<bool>());
}

TEST(Accumulate, FollowsStrides) {
  const at::Tensor main = random({6, 9}, at::kFloat, 1);
  const at::Tensor grad = random({9, 6}, at::kBFloat16, 2);
  const at::Tensor expected = main + grad.t();
  accumulate_(main, grad.t());
  expect_same_bits(main, expected);
}

TEST(Accumulate, RefusesWhatDoesNotFit) {
  EXPECT_THROW(accumulate_(at::zeros({3}), at::zeros({4})), c10::Error);
  EXPECT_THROW(accumulate_(at::zeros({3}), at::zeros({3}, at::kDouble)), c10::Error);
}

}  // namespace
}  // namespace layline::trainer::kernels::test
