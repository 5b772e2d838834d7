// Every kernel gives the same bits whatever the number of threads.
#include <algorithm>
#include <mutex>

#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/kernels/attention.h"
#include "layline/trainer/kernels/cross_entropy.h"
#include "layline/trainer/kernels/parallel.h"
#include "layline/trainer/kernels/rms_norm.h"
#include "layline/trainer/kernels/rope.h"
#include "layline/trainer/kernels/swiglu.h"
#include "tests/trainer/kernels/support.h"

namespace layline::trainer::kernels::test {
namespace {

using Results = std::vector<at::Tensor>;

void expect_same_for_any_number_of_threads(const std::function<Results(at::ScalarType)>& kernel) {
  for (const at::ScalarType dtype : kElementTypes) {
    SCOPED_TRACE(dtype);
    Results first;
    for (const int num_threads : {1, 2, 3}) {
      const ScopedThreads threads(num_threads);
      const Results results = kernel(dtype);
      if (first.empty()) first = results;
      for (size_t i = 0; i < results.size(); ++i) expect_same_bits(results[i], first[i]);
    }
  }
}

TEST(Threads, DoNotChangeRmsNorm) {
  expect_same_for_any_number_of_threads([](at::ScalarType dtype) -> Results {
    const at::Tensor x = random({700, 96}, dtype, 1), weight = random({96}, dtype, 2), dy = random({700, 96}, dtype, 3);
    const RmsNormOutput output = rms_norm(x, weight, 1e-5);
    const at::Tensor dweight = at::zeros({96}, arithmetic_of(dtype));
    const at::Tensor dx = rms_norm_backward(dy, x, output.rstd_T, weight, dweight);
    return {output.y_TH, output.rstd_T, rms_norm_apply(x, output.rstd_T, weight), dx, dweight};
  });
}

TEST(Threads, DoNotChangeRope) {
  expect_same_for_any_number_of_threads([](at::ScalarType dtype) -> Results {
    const at::Tensor x = random({2, 150, 6, 32}, dtype, 1);
    rope_(x, make_rope_table(150, 32, {}, dtype), false);
    return {x};
  });
}

TEST(Threads, DoNotChangeSwiglu) {
  expect_same_for_any_number_of_threads([](at::ScalarType dtype) -> Results {
    const at::Tensor gate_up = random({301, 200}, dtype, 1), dy = random({301, 100}, dtype, 2);
    return {swiglu(gate_up), swiglu_backward(dy, gate_up)};
  });
}

TEST(Threads, DoNotChangeAttention) {
  expect_same_for_any_number_of_threads([](at::ScalarType dtype) -> Results {
    const at::Tensor q = random({2, 150, 4, 32}, dtype, 1), dout = random({2, 150, 4, 32}, dtype, 4);
    const at::Tensor k = random({2, 150, 2, 32}, dtype, 2), v = random({2, 150, 2, 32}, dtype, 3);
    const AttentionOutput output = attention_flash(q, k, v);
    const AttentionGradients g = attention_flash_backward(dout, q, k, v, output.out_BSND, output.saved);
    return {output.out_BSND, output.saved, g.dq_BSND, g.dk_BSKD, g.dv_BSKD};
  });
}

TEST(Threads, DoNotChangeCrossEntropy) {
  expect_same_for_any_number_of_threads([](at::ScalarType dtype) -> Results {
    const at::Tensor logits = random({97, 500}, dtype, 1), sharded = logits.clone();
    const at::Tensor targets = at::arange(97);
    const at::Tensor scale = random({97}, arithmetic_of(dtype), 2);
    const at::Tensor loss = cross_entropy_fused_(logits, targets, scale, 490);
    const ChunkStats stats = make_chunk_stats(sharded);
    cross_entropy_local_max(sharded, stats.max_T, 490);
    cross_entropy_local_sums(sharded, stats.max_T, targets, stats.sum_exp_T, stats.target_logit_T, 490);
    cross_entropy_gradient_(sharded, stats.max_T, stats.sum_exp_T, targets, scale, 490);
    return {loss, logits, stats.max_T, stats.sum_exp_T, stats.target_logit_T, sharded};
  });
}

TEST(Threads, DoNotChangeTheOptimizer) {
  expect_same_for_any_number_of_threads([](at::ScalarType dtype) -> Results {
    const at::ScalarType type = arithmetic_of(dtype);
    const at::Tensor master = random({70001}, type, 1), m = at::zeros({70001}, type), v = at::zeros({70001}, type);
    const at::Tensor main = at::zeros({70001}, type), copy = at::empty({70001}, dtype);
    accumulate_(main, random({70001}, dtype, 2));
    adamw_(master, m, v, main, copy, {.step = 1, .learning_rate = 1e-2, .weight_decay = 0.1});
    return {main, master, m, v, copy, at::tensor({sum_of_squares(copy)}, at::kDouble)};
  });
}

TEST(Threads, ShareTheWork) {
  const ScopedThreads threads(2);
  std::vector<int64_t> starts;
  std::mutex mutex;
  parallel_rows(1000, 1000, [&](int64_t begin, int64_t) {
    const std::lock_guard lock(mutex);
    starts.push_back(begin);
  });
  std::sort(starts.begin(), starts.end());
  EXPECT_EQ(starts, (std::vector<int64_t>{0, 500}));
}

}  // namespace
}  // namespace layline::trainer::kernels::test
