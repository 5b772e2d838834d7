#include "layline/trainer/kernels/swiglu.h"

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

at::Tensor reference_swiglu(const std::vector<at::Tensor>& leaves) {
  const auto parts = leaves[0].chunk(2, -1);
  return at::silu(parts[0]) * parts[1];
}

TEST(Swiglu, AndItsGradientAreThoseOfAutograd) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const int64_t num_tokens : {1, 2, 13, 70}) {
      for (const int64_t feed_forward : {1, 3, 15, 16, 17, 33, 64, 100, 129, 300}) {
        SCOPED_TRACE(testing::Message() << dtype << " " << num_tokens << " x " << feed_forward);
        const at::Tensor gate_up = random({num_tokens, 2 * feed_forward}, dtype, 1) * 3;
        const at::Tensor dy = random({num_tokens, feed_forward}, dtype, 2);
        const Reference expected = differentiate({gate_up}, dy, reference_swiglu);
        with_each_instruction_set([&] {
          expect_rounded_once(swiglu(gate_up), expected.value);
          expect_rounded_once(swiglu_backward(dy, gate_up), expected.gradients[0]);
        });
      }
    }
  }
}

TEST(Swiglu, SaturatesWithoutOverflow) {
  for (const at::ScalarType dtype : kElementTypes) {
    const at::Tensor gate_up = at::tensor({-1e4, -800.0, -100.0, -20.0, 0.0, 20.0, 100.0, 800.0, 1e4}).to(dtype);
    const at::Tensor both = at::cat({gate_up, at::ones({9}, dtype)}).unsqueeze(0);
    const at::Tensor dy = at::ones({1, 9}, dtype);
    const Reference expected = differentiate({both}, dy, reference_swiglu);
    with_each_instruction_set([&] {
      expect_rounded_once(swiglu(both), expected.value);
      const at::Tensor gradient = swiglu_backward(dy, both);
      EXPECT_TRUE(gradient.isfinite().all().item<bool>());
      expect_rounded_once(gradient.narrow(1, 0, 9), expected.gradients[0].narrow(1, 0, 9));
    });
  }
}

TEST(Swiglu, PropagatesWhatIsNotANumber) {
  with_each_instruction_set([&] {
    at::Tensor gate_up = random({1, 40}, at::kFloat, 1);
    gate_up[0][3] = std::numeric_limits<double>::quiet_NaN();
    gate_up[0][24] = std::numeric_limits<double>::quiet_NaN();
    const at::Tensor bad = swiglu(gate_up).isnan();
    EXPECT_EQ(bad.sum().item<int64_t>(), 2);
    EXPECT_TRUE(bad[0][3].item<bool>() && bad[0][4].item<bool>());
  });
}

TEST(Swiglu, KeepsLeadingDims) {
  const at::Tensor gate_up = random({2, 3, 10}, at::kFloat, 1);
  EXPECT_EQ(swiglu(gate_up).sizes(), at::IntArrayRef({2, 3, 5}));
  EXPECT_EQ(swiglu_backward(swiglu(gate_up), gate_up).sizes(), gate_up.sizes());
}

}  // namespace
}  // namespace layline::trainer::kernels::test
