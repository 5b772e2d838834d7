#include "layline/trainer/kernels/attention.h"

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

struct Shape {
  int64_t batch, sequence, heads, kv_heads, head_size;
};

const Shape kShapes[] = {{1, 1, 1, 1, 4},    {2, 2, 2, 1, 8},    {1, 17, 3, 3, 12},  {2, 33, 4, 2, 16},
                         {1, 70, 6, 2, 24},  {1, 65, 2, 2, 32},  {1, 127, 2, 1, 64}, {2, 64, 2, 2, 128},
                         {1, 130, 4, 1, 80}, {1, 200, 3, 1, 96}, {3, 128, 2, 1, 64}, {1, 300, 2, 2, 48}};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "B " << s.batch << " S " << s.sequence << " N " << s.heads << " K " << s.kv_heads << " D "
             << s.head_size;
}

struct Inputs {
  at::Tensor q, k, v, dout;
};

// q, k and v are slices of one joint projection.
Inputs make_inputs(const Shape& s, at::ScalarType dtype) {
  const at::Tensor joint = random({s.batch, s.sequence, s.heads + 2 * s.kv_heads, s.head_size}, dtype, 1);
  return {.q = joint.narrow(2, 0, s.heads),
          .k = joint.narrow(2, s.heads, s.kv_heads),
          .v = joint.narrow(2, s.heads + s.kv_heads, s.kv_heads),
          .dout = random({s.batch, s.sequence, s.heads, s.head_size}, dtype, 2)};
}

at::Tensor reference_scores(const at::Tensor& q, const at::Tensor& k) {
  const at::Tensor keys = k.repeat_interleave(q.size(2) / k.size(2), 2).permute({0, 2, 3, 1});
  const at::Tensor scores = at::matmul(q.transpose(1, 2), keys) / std::sqrt(static_cast<double>(q.size(3)));
  const at::Tensor future = at::ones({q.size(1), q.size(1)}, at::kBool).triu(1);
  return scores.masked_fill(future, -std::numeric_limits<double>::infinity());
}

at::Tensor reference_attention(const std::vector<at::Tensor>& leaves) {
  const at::Tensor probabilities = reference_scores(leaves[0], leaves[1]).softmax(-1);
  const at::Tensor values = leaves[2].repeat_interleave(leaves[0].size(2) / leaves[2].size(2), 2).transpose(1, 2);
  return at::matmul(probabilities, values).transpose(1, 2).contiguous();
}

// Intermediate results in bf16 (probabilities, gradients of scores, heads summed) round more than once.
void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  const double tolerance = actual.scalar_type() == at::kDouble  ? 1e-13
                           : actual.scalar_type() == at::kFloat ? 1e-5
                                                                : 1.5e-2;
  const double error = (actual.to(at::kDouble) - expected).abs().max().item<double>();
  EXPECT_LE(error, tolerance * (1e-2 + expected.abs().max().item<double>()));
}

void check_forward_and_backward(bool flash) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << dtype << " " << shape);
      const Inputs in = make_inputs(shape, dtype);
      const Reference expected = differentiate({in.q, in.k, in.v}, in.dout, reference_attention);
      with_each_instruction_set([&] {
        const AttentionOutput output = flash ? attention_flash(in.q, in.k, in.v) : attention_unfused(in.q, in.k, in.v);
        const AttentionGradients gradients =
            flash ? attention_flash_backward(in.dout, in.q, in.k, in.v, output.out_BSND, output.saved)
                  : attention_unfused_backward(in.dout, in.q, in.k, in.v, output.saved);
        expect_close(output.out_BSND, expected.value);
        expect_close(gradients.dq_BSND, expected.gradients[0]);
        expect_close(gradients.dk_BSKD, expected.gradients[1]);
        expect_close(gradients.dv_BSKD, expected.gradients[2]);
        for (const at::Tensor& result : {output.out_BSND, gradients.dq_BSND, gradients.dk_BSKD, gradients.dv_BSKD}) {
          EXPECT_TRUE(result.is_contiguous());
          EXPECT_EQ(result.scalar_type(), dtype);
        }
      });
    }
  }
}

TEST(FlashAttention, AndItsGradientsAreThoseOfAutograd) { check_forward_and_backward(true); }

TEST(UnfusedAttention, AndItsGradientsAreThoseOfAutograd) { check_forward_and_backward(false); }

TEST(FlashAttention, SavesTheLogarithmOfTheSumOfExponentials) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(testing::Message() << dtype << " " << shape);
      const Inputs in = make_inputs(shape, dtype);
      const at::Tensor expected = reference_scores(in.q.to(at::kDouble), in.k.to(at::kDouble)).logsumexp(-1);
      const at::Tensor lse = attention_flash(in.q, in.k, in.v).saved;
      EXPECT_EQ(lse.scalar_type(), arithmetic_of(dtype));
      ASSERT_EQ(lse.sizes(), expected.sizes());
      const double tolerance = dtype == at::kDouble ? 1e-13 : 3e-5;
      EXPECT_LE((lse.to(at::kDouble) - expected).abs().max().item<double>(),
                tolerance * (1 + expected.abs().max().item<double>()));
    }
  }
}

// Scratch memory is reused: what others left there must not matter.
TEST(FlashAttention, ReadsOnlyWhatItWrote) {
  for (const at::ScalarType dtype : kElementTypes) {
    const Inputs in = make_inputs({1, 37, 2, 1, 10}, dtype);
    const Reference expected = differentiate({in.q, in.k, in.v}, in.dout, reference_attention);
    with_each_instruction_set([&] {
      for (int64_t size = 1024; size <= 1 << 18; size *= 2) {
        at::full({size}, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
      }
      const AttentionOutput output = attention_flash(in.q, in.k, in.v);
      expect_close(output.out_BSND, expected.value);
      const AttentionGradients g = attention_flash_backward(in.dout, in.q, in.k, in.v, output.out_BSND, output.saved);
      expect_close(g.dq_BSND, expected.gradients[0]);
      expect_close(g.dk_BSKD, expected.gradients[1]);
      expect_close(g.dv_BSKD, expected.gradients[2]);
    });
  }
}

TEST(Attention, LooksAtNothingInTheFuture) {
  for (const bool flash : {true, false}) {
    for (const at::ScalarType dtype : {at::kBFloat16, at::kFloat}) {
      const Inputs in = make_inputs({1, 100, 2, 1, 32}, dtype);
      const auto attend = flash ? attention_flash : attention_unfused;
      const at::Tensor before = attend(in.q, in.k, in.v).out_BSND;
      in.k.narrow(1, 60, 40).fill_(50);
      in.v.narrow(1, 60, 40).fill_(-70);
      expect_same_bits(attend(in.q, in.k, in.v).out_BSND.narrow(1, 0, 60), before.narrow(1, 0, 60));
    }
  }
}

TEST(Attention, AllocatesTheSameOnTheMetaDevice) {
  for (const at::ScalarType dtype : kElementTypes) {
    const Inputs in = make_inputs({2, 10, 4, 2, 16}, dtype);
    const at::Tensor q = in.q.to(at::kMeta), k = in.k.to(at::kMeta), v = in.v.to(at::kMeta);
    const AttentionOutput flash = attention_flash(q, k, v), unfused = attention_unfused(q, k, v);
    const AttentionOutput real_flash = attention_flash(in.q, in.k, in.v);
    const AttentionOutput real_unfused = attention_unfused(in.q, in.k, in.v);
    const auto expect_alike = [](const at::Tensor& a, const at::Tensor& b) {
      EXPECT_TRUE(a.is_meta());
      EXPECT_EQ(a.sizes(), b.sizes());
      EXPECT_EQ(a.strides(), b.strides());
      EXPECT_EQ(a.scalar_type(), b.scalar_type());
    };
    expect_alike(flash.out_BSND, real_flash.out_BSND);
    expect_alike(flash.saved, real_flash.saved);
    expect_alike(unfused.out_BSND, real_unfused.out_BSND);
    expect_alike(unfused.saved, real_unfused.saved);
    const AttentionGradients gradients = attention_flash_backward(flash.out_BSND, q, k, v, flash.out_BSND, flash.saved);
    EXPECT_EQ(gradients.dk_BSKD.sizes(), k.sizes());
    EXPECT_EQ(attention_unfused_backward(flash.out_BSND, q, k, v, unfused.saved).dv_BSKD.sizes(), v.sizes());
  }
}

}  // namespace
}  // namespace layline::trainer::kernels::test
