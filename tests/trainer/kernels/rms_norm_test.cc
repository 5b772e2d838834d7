#include "layline/trainer/kernels/rms_norm.h"

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

constexpr double kEpsilon = 1e-5;
const std::vector<std::vector<int64_t>> kShapes = {{1, 1},   {2, 3},    {3, 8},    {7, 15},  {16, 16}, {17, 17},
                                                   {5, 31},  {33, 33},  {70, 64},  {3, 65},  {9, 127}, {70, 128},
                                                   {1, 130}, {33, 255}, {70, 300}, {600, 67}};

at::Tensor reference_norm(const std::vector<at::Tensor>& leaves) {
  return leaves[0] * (leaves[0].square().mean(-1, true) + kEpsilon).rsqrt() * leaves[1];
}

struct Inputs {
  at::Tensor x, weight, dy, residual;
};

Inputs make_inputs(at::IntArrayRef shape, at::ScalarType dtype) {
  return {.x = random(shape, dtype, 1),
          .weight = random({shape.back()}, dtype, 2),
          .dy = random(shape, dtype, 3),
          .residual = random(shape, dtype, 4)};
}

TEST(RmsNorm, AndItsGradientsAreThoseOfAutograd) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const std::vector<int64_t>& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << dtype << " " << shape[0] << " x " << shape[1]);
      const Inputs in = make_inputs(shape, dtype);
      const Reference expected = differentiate({in.x, in.weight}, in.dy, reference_norm);
      with_each_instruction_set([&] {
        const RmsNormOutput output = rms_norm(in.x, in.weight, kEpsilon);
        expect_rounded_once(output.y_TH, expected.value);
        at::Tensor dweight = at::ones({shape[1]}, arithmetic_of(dtype));
        const at::Tensor dx = rms_norm_backward(in.dy, in.x, output.rstd_T, in.weight, dweight);
        const double magnitude = (in.dy * in.weight).abs().max().item<double>() * output.rstd_T.max().item<double>();
        expect_rounded_once(dx, expected.gradients[0], magnitude);
        expect_rounded_once(dweight, expected.gradients[1] + 1);
        const at::Tensor sum = rms_norm_backward(in.dy, in.x, output.rstd_T, in.weight, dweight, in.residual);
        expect_rounded_once(sum, expected.gradients[0] + in.residual.to(at::kDouble), magnitude);
      });
    }
  }
}

TEST(RmsNorm, IsRebuiltWithTheSameBits) {
  for (const at::ScalarType dtype : kElementTypes) {
    const Inputs in = make_inputs({37, 131}, dtype);
    with_each_instruction_set([&] {
      const RmsNormOutput output = rms_norm(in.x, in.weight, kEpsilon);
      expect_same_bits(rms_norm_apply(in.x, output.rstd_T, in.weight), output.y_TH);
    });
  }
}

TEST(RmsNorm, KeepsLeadingDims) {
  const Inputs in = make_inputs({2, 5, 24}, at::kFloat);
  const RmsNormOutput output = rms_norm(in.x, in.weight, kEpsilon);
  EXPECT_EQ(output.y_TH.sizes(), in.x.sizes());
  EXPECT_EQ(output.rstd_T.sizes(), at::IntArrayRef({10}));
}

TEST(RmsNorm, AllocatesTheSameOnTheMetaDevice) {
  const at::Tensor x = at::empty({6, 10}, at::dtype(at::kBFloat16).device(at::kMeta));
  const at::Tensor weight = at::empty({10}, x.options());
  const RmsNormOutput output = rms_norm(x, weight, kEpsilon);
  EXPECT_EQ(output.y_TH.sizes(), x.sizes());
  EXPECT_EQ(output.rstd_T.scalar_type(), at::kFloat);
  const at::Tensor dweight = at::empty({10}, at::dtype(at::kFloat).device(at::kMeta));
  EXPECT_EQ(rms_norm_backward(x, x, output.rstd_T, weight, dweight).sizes(), x.sizes());
}

TEST(RmsNorm, PropagatesWhatIsNotANumber) {
  Inputs in = make_inputs({3, 40}, at::kFloat);
  in.x[1][7] = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor y = rms_norm(in.x, in.weight, kEpsilon).y_TH;
  EXPECT_TRUE(y[1].isnan().all().item<bool>());
  EXPECT_FALSE(y[0].isnan().any().item<bool>());
}

TEST(RmsNorm, RefusesTensorsThatDoNotFit) {
  const Inputs in = make_inputs({4, 8}, at::kFloat);
  EXPECT_THROW(rms_norm(in.x.t(), in.weight, kEpsilon), c10::Error);
  EXPECT_THROW(rms_norm(in.x, in.weight.to(at::kBFloat16), kEpsilon), c10::Error);
  EXPECT_THROW(rms_norm(in.x, random({9}, at::kFloat, 1), kEpsilon), c10::Error);
}

}  // namespace
}  // namespace layline::trainer::kernels::test
