#include "layline/trainer/kernels/adamw.h"

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

struct State {
  at::Tensor master, exp_avg, exp_avg_sq;
};

State make_state(int64_t num_elements, at::ScalarType dtype) {
  return {.master = random({num_elements}, dtype, 1),
          .exp_avg = at::zeros({num_elements}, dtype),
          .exp_avg_sq = at::zeros({num_elements}, dtype)};
}

// torch/optim/adamw.py, _single_tensor_adam with decoupled_weight_decay.
void reference_step(State& state, const at::Tensor& gradient, const AdamWStep& s) {
  const at::Tensor grad = gradient * s.gradient_scale;
  state.master.mul_(1 - s.learning_rate * s.weight_decay);
  state.exp_avg.lerp_(grad, 1 - s.beta1);
  state.exp_avg_sq.mul_(s.beta2).addcmul_(grad, grad, 1 - s.beta2);
  const double correction1 = 1 - std::pow(s.beta1, s.step);
  const double correction2 = 1 - std::pow(s.beta2, s.step);
  const at::Tensor denominator = (state.exp_avg_sq.sqrt() / std::sqrt(correction2)).add_(s.epsilon);
  state.master.addcdiv_(state.exp_avg, denominator, -s.learning_rate / correction1);
}

AdamWStep make_step(int64_t step) {
  return {.step = step,
          .learning_rate = 1e-2,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .epsilon = 1e-8,
          .weight_decay = 0.1,
          .gradient_scale = 0.37};
}

TEST(AdamW, UpdatesAsPyTorchDoes) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t num_elements : {1, 5, 16, 17, 100, 1027, 50001}) {
      SCOPED_TRACE(testing::Message() << dtype << " " << num_elements);
      with_each_instruction_set([&] {
        State state = make_state(num_elements, dtype);
        State expected = make_state(num_elements, at::kDouble);
        expected.master = state.master.to(at::kDouble, false, true);  // a copy
        at::Tensor copy = at::empty({num_elements}, dtype == at::kFloat ? at::kBFloat16 : at::kDouble);
        for (int64_t step = 1; step <= 3; ++step) {
          const at::Tensor grad = random({num_elements}, dtype, 10 + step);
          adamw_(state.master, state.exp_avg, state.exp_avg_sq, grad, copy, make_step(step));
          reference_step(expected, grad.to(at::kDouble), make_step(step));
        }
        expect_rounded_once(state.master, expected.master);
        expect_rounded_once(state.exp_avg, expected.exp_avg);
        expect_rounded_once(state.exp_avg_sq, expected.exp_avg_sq);
        expect_same_bits(copy, state.master.to(copy.scalar_type()));
      });
    }
  }
}

TEST(AdamW, IsWithinRoundingOfTheFusedOneOfPyTorch) {
  State state = make_state(1000, at::kFloat), other = make_state(1000, at::kFloat);
  for (int64_t step = 1; step <= 5; ++step) {
    AdamWStep s = make_step(step);
    s.gradient_scale = 1;
    const at::Tensor grad = random({1000}, at::kFloat, step);
    adamw_(state.master, state.exp_avg, state.exp_avg_sq, grad, std::nullopt, s);
    std::vector<at::Tensor> params = {other.master}, grads = {grad.clone()}, avgs = {other.exp_avg};
    std::vector<at::Tensor> squares = {other.exp_avg_sq}, steps = {at::full({}, static_cast<double>(step), at::kFloat)};
    at::_fused_adamw_(params, grads, avgs, squares, {}, steps, s.learning_rate, s.beta1, s.beta2, s.weight_decay,
                      s.epsilon, false, false);
  }
  EXPECT_LT((state.master - other.master).abs().max().item<double>(), 1e-6);
}

TEST(AdamW, DoesNotNeedACopy) {
  State with = make_state(77, at::kFloat), without = make_state(77, at::kFloat);
  const at::Tensor grad = random({77}, at::kFloat, 5);
  adamw_(with.master, with.exp_avg, with.exp_avg_sq, grad, at::empty({77}, at::kFloat), make_step(1));
  adamw_(without.master, without.exp_avg, without.exp_avg_sq, grad, std::nullopt, make_step(1));
  expect_same_bits(with.master, without.master);
}

TEST(AdamW, RefusesTensorsThatDoNotFit) {
  State state = make_state(10, at::kFloat);
  const at::Tensor grad = random({10}, at::kFloat, 5);
  EXPECT_THROW(adamw_(state.master, state.exp_avg, state.exp_avg_sq, grad.narrow(0, 0, 9), std::nullopt, {}),
               c10::Error);
  EXPECT_THROW(adamw_(state.master, state.exp_avg, state.exp_avg_sq, grad.to(at::kBFloat16), std::nullopt, {}),
               c10::Error);
}

TEST(SumOfSquares, IsThatOfFp64) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const int64_t num_elements : {0, 1, 7, 8, 9, 1000, 65536, 200003}) {
      const at::Tensor x = random({num_elements}, dtype, 1);
      const double expected = x.to(at::kDouble).square().sum().item<double>();
      with_each_instruction_set([&] { EXPECT_NEAR(sum_of_squares(x), expected, 1e-12 * expected); });
    }
  }
}

TEST(SumOfSquares, DoesNotStopGrowing) { EXPECT_EQ(sum_of_squares(at::ones({1 << 25}, at::kBFloat16)), 1 << 25); }

TEST(AllFinite, SeesOneThatIsNot) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const int64_t at_index : {0, 17, 1002}) {
      at::Tensor x = random({1003}, dtype, 1);
      EXPECT_TRUE(all_finite(x));
      x[at_index] = at_index == 17 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
      EXPECT_FALSE(all_finite(x));
    }
  }
}

}  // namespace
}  // namespace layline::trainer::kernels::test
