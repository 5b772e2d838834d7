#include "layline/trainer/kernels/cross_entropy.h"

#include <limits>

#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

struct Chunk {
  at::Tensor logits_TV;  // columns from num_valid on are padding
  at::Tensor targets_T;  // -1: masked
  at::Tensor scale_T;    // 0 where masked
  int64_t num_valid = 0;
};

Chunk make_chunk(int64_t num_tokens, int64_t num_valid, int64_t num_padding, at::ScalarType dtype) {
  Chunk chunk = {.logits_TV = random({num_tokens, num_valid + num_padding}, dtype, 1) * 4,
                 .targets_T = (random({num_tokens}, at::kDouble, 2).abs() * 1000).to(at::kLong) % num_valid,
                 .scale_T = random({num_tokens}, arithmetic_of(dtype), 3),
                 .num_valid = num_valid};
  chunk.logits_TV.narrow(1, num_valid, num_padding).fill_(90);
  const at::Tensor masked = at::arange(num_tokens) % 5 == 3;
  chunk.targets_T.masked_fill_(masked, -1);
  chunk.scale_T.masked_fill_(masked, 0);
  return chunk;
}

// Loss of each token, 0 where masked, and the gradient of the logits with zeros for padding.
Reference reference_cross_entropy(const Chunk& chunk) {
  const at::Tensor valid = chunk.logits_TV.narrow(1, 0, chunk.num_valid);
  Reference reference = differentiate({valid}, chunk.scale_T, [&](const std::vector<at::Tensor>& leaves) {
    return at::cross_entropy_loss(leaves[0], chunk.targets_T, {}, at::Reduction::None, -1);
  });
  const int64_t num_padding = chunk.logits_TV.size(1) - chunk.num_valid;
  reference.gradients[0] = at::constant_pad_nd(reference.gradients[0], {0, num_padding});
  return reference;
}

const std::vector<int64_t> kVocabularies = {1, 2, 17, 31, 32, 64, 127, 1000};

TEST(FusedCrossEntropy, LossAndGradientAreThoseOfAutograd) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const int64_t num_tokens : {1, 6, 70}) {
      for (const int64_t vocabulary : kVocabularies) {
        for (const int64_t num_padding : {0, 3}) {
          SCOPED_TRACE(testing::Message() << dtype << " " << num_tokens << " x " << vocabulary << " + " << num_padding);
          const Chunk chunk = make_chunk(num_tokens, vocabulary, num_padding, dtype);
          const Reference expected = reference_cross_entropy(chunk);
          with_each_instruction_set([&] {
            const at::Tensor logits = chunk.logits_TV.clone();
            const at::Tensor loss = cross_entropy_fused_(logits, chunk.targets_T, chunk.scale_T, vocabulary);
            EXPECT_EQ(loss.scalar_type(), arithmetic_of(dtype));
            expect_rounded_once(loss, expected.value);
            expect_rounded_once(logits, expected.gradients[0]);
          });
        }
      }
    }
  }
}

// Each rank has a slice of the columns; what the ranks would reduce is reduced here.
class ShardedHead {
 public:
  ShardedHead(const Chunk& chunk, int64_t num_ranks) {
    const int64_t width = chunk.logits_TV.size(1) / num_ranks;
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      const int64_t begin = rank * width;
      const at::Tensor is_here = (chunk.targets_T >= begin).logical_and(chunk.targets_T < begin + width);
      shards_.push_back({.logits_TV = chunk.logits_TV.narrow(1, begin, width).clone(at::MemoryFormat::Contiguous),
                         .targets_T = at::where(is_here, chunk.targets_T - begin, -1),
                         .scale_T = chunk.scale_T,
                         .num_valid = std::clamp<int64_t>(chunk.num_valid - begin, 0, width)});
    }
  }

  at::Tensor loss(const at::Tensor& targets_T) {
    for (const Chunk& shard : shards_) {
      const ChunkStats stats = make_chunk_stats(shard.logits_TV);
      cross_entropy_local_max(shard.logits_TV, stats.max_T, shard.num_valid);
      total_.max_T = total_.max_T.defined() ? at::maximum(total_.max_T, stats.max_T) : stats.max_T;
    }
    for (const Chunk& shard : shards_) {
      const ChunkStats stats = make_chunk_stats(shard.logits_TV);
      cross_entropy_local_sums(shard.logits_TV, total_.max_T, shard.targets_T, stats.sum_exp_T, stats.target_logit_T,
                               shard.num_valid);
      total_.sum_exp_T = total_.sum_exp_T.defined() ? total_.sum_exp_T + stats.sum_exp_T : stats.sum_exp_T;
      total_.target_logit_T =
          total_.target_logit_T.defined() ? total_.target_logit_T + stats.target_logit_T : stats.target_logit_T;
    }
    const at::Tensor loss_T = total_.sum_exp_T.log() - total_.target_logit_T;
    return at::where(targets_T >= 0, loss_T, at::zeros_like(loss_T));
  }

  at::Tensor gradient() {
    std::vector<at::Tensor> gradients;
    for (const Chunk& shard : shards_) {
      cross_entropy_gradient_(shard.logits_TV, total_.max_T, total_.sum_exp_T, shard.targets_T, shard.scale_T,
                              shard.num_valid);
      gradients.push_back(shard.logits_TV);
    }
    return at::cat(gradients, 1);
  }

 private:
  std::vector<Chunk> shards_;
  ChunkStats total_;
};

TEST(ShardedCrossEntropy, IsThatOfTheWholeVocabulary) {
  for (const at::ScalarType dtype : kElementTypes) {
    for (const int64_t num_ranks : {1, 2, 4}) {
      for (const int64_t vocabulary : {17, 127, 1000}) {
        SCOPED_TRACE(testing::Message() << dtype << " " << vocabulary << " over " << num_ranks);
        const int64_t num_padding = (num_ranks - vocabulary % num_ranks) % num_ranks;
        const Chunk chunk = make_chunk(23, vocabulary, num_padding, dtype);
        const Reference expected = reference_cross_entropy(chunk);
        with_each_instruction_set([&] {
          ShardedHead head(chunk, num_ranks);
          expect_rounded_once(head.loss(chunk.targets_T), expected.value);
          expect_rounded_once(head.gradient(), expected.gradients[0]);
        });
      }
    }
  }
}

// With 5 words over 4 ranks of 2 columns, the last rank has nothing but padding.
TEST(ShardedCrossEntropy, AllowsARankWithoutValidColumns) {
  const Chunk chunk = make_chunk(11, 5, 3, at::kFloat);
  const Reference expected = reference_cross_entropy(chunk);
  with_each_instruction_set([&] {
    ShardedHead head(chunk, 4);
    expect_rounded_once(head.loss(chunk.targets_T), expected.value);
    expect_rounded_once(head.gradient(), expected.gradients[0]);
  });
}

TEST(FusedCrossEntropy, StaysFiniteForLargeLogits) {
  for (const at::ScalarType dtype : kElementTypes) {
    Chunk chunk = make_chunk(4, 100, 0, dtype);
    chunk.logits_TV.mul_(500);
    const Reference expected = reference_cross_entropy(chunk);
    with_each_instruction_set([&] {
      const at::Tensor logits = chunk.logits_TV.clone();
      expect_rounded_once(cross_entropy_fused_(logits, chunk.targets_T, chunk.scale_T, 100), expected.value);
      expect_rounded_once(logits, expected.gradients[0]);
    });
  }
}

// Against the exponential function of fp64, over all that has a normal fp32.
TEST(FusedCrossEntropy, KeepsSmallProbabilitiesExact) {
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const double smallest = dtype == at::kFloat ? -83 : -700;
    const at::Tensor below = at::linspace(smallest, 0, 5003, at::dtype(at::kDouble)).to(dtype);
    const at::Tensor logits = at::cat({below, at::full({4}, -1e4, dtype), at::full({1}, 0, dtype)}).unsqueeze(0);
    const at::Tensor expected = logits.to(at::kDouble).softmax(1);
    with_each_instruction_set([&] {
      const at::Tensor gradient = logits.clone();
      cross_entropy_fused_(gradient, at::full({1}, 5007, at::kLong), at::ones({1}, dtype), 5008);
      const at::Tensor error = gradient.narrow(1, 0, 5003).to(at::kDouble) / expected.narrow(1, 0, 5003) - 1;
      EXPECT_LT(error.abs().max().item<double>(), dtype == at::kFloat ? 5e-7 : 5e-15);
      EXPECT_EQ(gradient.narrow(1, 5003, 4).abs().max().item<double>(), 0);
    });
  }
}

TEST(FusedCrossEntropy, ShowsLogitsThatAreNotNumbersWhereTheyCount) {
  with_each_instruction_set([&] {
    const Chunk chunk = make_chunk(5, 50, 0, at::kFloat);  // token 3 is masked
    for (const int64_t row : {1, 3}) chunk.logits_TV[row][20] = std::numeric_limits<double>::quiet_NaN();
    const at::Tensor loss = cross_entropy_fused_(chunk.logits_TV, chunk.targets_T, chunk.scale_T, 50);
    EXPECT_TRUE(loss[1].isnan().item<bool>());
    EXPECT_TRUE(chunk.logits_TV[1].isnan().any().item<bool>());
    EXPECT_EQ(loss[3].item<double>(), 0);
    EXPECT_EQ(chunk.logits_TV[3].abs().max().item<double>(), 0);
  });
}

TEST(CrossEntropy, RefusesTargetsBeyondTheVocabulary) {
  const Chunk chunk = make_chunk(5, 50, 2, at::kFloat);
  chunk.targets_T[0] = 50;
  EXPECT_THROW(cross_entropy_fused_(chunk.logits_TV, chunk.targets_T, chunk.scale_T, 50), c10::Error);
  chunk.targets_T[0] = -100;
  EXPECT_THROW(cross_entropy_fused_(chunk.logits_TV, chunk.targets_T, chunk.scale_T, 50), c10::Error);
}

}  // namespace
}  // namespace layline::trainer::kernels::test
