// The trainer's kernels, each beside what ATen would do for the same result ("ours" against "aten") and, in bytes a
// second, against the copy of a tensor ("copy"): shapes of a step of a small Llama in bf16. Pairs run one after the
// other; compare ratios, not times of different runs. OMP_NUM_THREADS=1 is least noisy.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/kernels/attention.h"
#include "layline/trainer/kernels/cross_entropy.h"
#include "layline/trainer/kernels/rms_norm.h"
#include "layline/trainer/kernels/rope.h"
#include "layline/trainer/kernels/swiglu.h"

namespace layline::trainer::kernels {
namespace {

constexpr double kSecondsPerCase = 0.3;

constexpr int64_t kTokens = 2048;
constexpr int64_t kHidden = 768;
constexpr int64_t kFeedForward = 2048;
constexpr int64_t kVocabulary = 32000;

const at::TensorOptions kBf16 = at::dtype(at::kBFloat16);

// With one thread, what the processor spent on it; others on the machine do not count.
double seconds_now() {
  std::timespec time{};
  clock_gettime(at::get_num_threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Of calls during kSecondsPerCase, the fastest: the one that others on the machine disturbed least.
double best_seconds(const std::function<void()>& body) {
  body();
  double best = std::numeric_limits<double>::infinity();
  const double end = seconds_now() + kSecondsPerCase;
  for (double start = seconds_now(); start < end;) {
    body();
    const double stop = seconds_now();
    best = std::min(best, stop - start);
    start = stop;
  }
  return best;
}

// work: bytes that have to be moved, or floating point operations, by one call.
void add(const std::string& name, double work, const char* unit, const std::function<void()>& body) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 for (auto _ : state) state.SetIterationTime(best_seconds(body));
                                 state.counters[unit] =
                                     benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1);
}

void add_copy() {
  for (const int64_t megabytes : {2, 64, 512}) {
    const at::Tensor from = at::randn({megabytes << 18});
    const at::Tensor to = at::empty_like(from);
    add("copy/" + std::to_string(megabytes) + "MB", 2.0 * static_cast<double>(from.nbytes()), "B/s",
        [=] { at::Tensor(to).copy_(from); });
  }
}

void add_rms_norm() {
  const at::Tensor x = at::randn({kTokens, kHidden}, kBf16);
  const at::Tensor dy = at::randn_like(x);
  const at::Tensor weight = at::randn({kHidden}, kBf16);
  const at::Tensor dweight = at::zeros({kHidden});
  const at::Tensor rstd = rms_norm(x, weight, 1e-5).rstd_T;
  const auto tensor = static_cast<double>(x.nbytes());
  add("rms_norm/forward/ours", 2 * tensor, "B/s", [=] { rms_norm(x, weight, 1e-5); });
  add("rms_norm/forward/aten", 2 * tensor, "B/s", [=] { at::rms_norm(x, {kHidden}, weight, 1e-5); });
  add("rms_norm/backward/ours", 3 * tensor, "B/s", [=] { rms_norm_backward(dy, x, rstd, weight, dweight); });
  add("rms_norm/backward_residual/ours", 4 * tensor, "B/s",
      [=] { rms_norm_backward(dy, x, rstd, weight, dweight, dy); });
  add("rms_norm/backward/aten", 3 * tensor, "B/s", [=] {
    const at::Tensor x32 = x.to(at::kFloat);
    const at::Tensor dy32 = dy.to(at::kFloat);
    const at::Tensor r = rstd.unsqueeze(1);
    const at::Tensor g = dy32 * weight.to(at::kFloat);
    at::Tensor(dweight).add_((dy32 * x32 * r).sum(0));
    benchmark::DoNotOptimize((g * r - x32 * r.pow(3) * (g * x32).mean(1, true)).to(at::kBFloat16));
  });
}

void add_rope() {
  const at::Tensor x = at::randn({1, kTokens, 12, 64}, kBf16);
  const RopeTable table = make_rope_table(kTokens, 64, {}, at::kBFloat16);
  const auto tensor = static_cast<double>(x.nbytes());
  add("rope/ours", 2 * tensor, "B/s", [=] { rope_(x, table, false); });
  const at::Tensor cos = at::cat({table.cos_SD2, table.cos_SD2}, 1).unsqueeze(1).to(at::kBFloat16);
  const at::Tensor sin = at::cat({table.sin_SD2, table.sin_SD2}, 1).unsqueeze(1).to(at::kBFloat16);
  add("rope/aten", 2 * tensor, "B/s", [=] {
    const auto halves = x.chunk(2, -1);
    benchmark::DoNotOptimize(x * cos + at::cat({-halves[1], halves[0]}, -1) * sin);
  });
}

void add_swiglu() {
  const at::Tensor gate_up = at::randn({kTokens, 2 * kFeedForward}, kBf16);
  const at::Tensor dy = at::randn({kTokens, kFeedForward}, kBf16);
  const auto parts = gate_up.chunk(2, 1);
  const auto tensor = static_cast<double>(dy.nbytes());
  add("swiglu/forward/ours", 3 * tensor, "B/s", [=] { swiglu(gate_up); });
  add("swiglu/forward/aten", 3 * tensor, "B/s", [=] { benchmark::DoNotOptimize(at::silu(parts[0]) * parts[1]); });
  add("swiglu/backward/ours", 5 * tensor, "B/s", [=] { swiglu_backward(dy, gate_up); });
  add("swiglu/backward/aten", 5 * tensor, "B/s", [=] {
    const at::Tensor dgate = at::silu_backward(dy * parts[1], parts[0]);
    benchmark::DoNotOptimize(at::cat({dgate, dy * at::silu(parts[0])}, 1));
  });
}

void add_cross_entropy() {
  constexpr int64_t kChunk = 512;
  const at::Tensor logits = at::randn({kChunk, kVocabulary}, kBf16);
  const at::Tensor targets = at::randint(kVocabulary, {kChunk}, at::kLong);
  const at::Tensor scale = at::full({kChunk}, 1e-3, at::kFloat);
  const auto tensor = static_cast<double>(logits.nbytes());
  add("cross_entropy/fused/ours", 2 * tensor, "B/s",
      [=] { cross_entropy_fused_(logits, targets, scale, kVocabulary); });
  add("cross_entropy/sharded/ours", 2 * tensor, "B/s", [=] {
    const ChunkStats stats = make_chunk_stats(logits);
    cross_entropy_local_max(logits, stats.max_T, kVocabulary);
    cross_entropy_local_sums(logits, stats.max_T, targets, stats.sum_exp_T, stats.target_logit_T, kVocabulary);
    cross_entropy_gradient_(logits, stats.max_T, stats.sum_exp_T, targets, scale, kVocabulary);
  });
  add("cross_entropy/fused/aten", 2 * tensor, "B/s", [=] {
    const at::Tensor log_softmax = at::log_softmax(logits, 1, at::kFloat);
    at::Tensor gradient = log_softmax.exp();
    gradient.scatter_add_(1, targets.unsqueeze(1), at::full({kChunk, 1}, -1, at::kFloat));
    benchmark::DoNotOptimize(gradient.mul_(scale.unsqueeze(1)).to(at::kBFloat16));
    benchmark::DoNotOptimize(log_softmax.gather(1, targets.unsqueeze(1)));
  });
}

void add_optimizer() {
  constexpr int64_t kElements = 1 << 24;
  const at::Tensor master = at::randn({kElements});
  const at::Tensor exp_avg = at::zeros({kElements});
  const at::Tensor exp_avg_sq = at::zeros({kElements});
  const at::Tensor grad = at::randn({kElements});
  const at::Tensor copy = at::empty({kElements}, kBf16);
  const auto tensor = static_cast<double>(grad.nbytes());
  add("adamw/ours", 7.5 * tensor, "B/s", [=] {
    adamw_(master, exp_avg, exp_avg_sq, grad, copy, {.step = 9, .learning_rate = 1e-3, .weight_decay = 0.1});
  });
  add("adamw/aten", 7.5 * tensor, "B/s", [=] {
    std::vector<at::Tensor> params = {master}, grads = {grad}, avgs = {exp_avg}, squares = {exp_avg_sq};
    at::_fused_adamw_(params, grads, avgs, squares, {}, {at::full({}, 9.0F)}, 1e-3, 0.9, 0.95, 0.1, 1e-8, false, false);
    at::Tensor(copy).copy_(master);
  });
  add("sum_of_squares/ours", tensor, "B/s", [=] { benchmark::DoNotOptimize(sum_of_squares(grad)); });
  add("sum_of_squares/aten", tensor, "B/s",
      [=] { benchmark::DoNotOptimize(at::linalg_vector_norm(grad, 2, {}, false, at::kDouble).item<double>()); });
  const at::Tensor small = at::randn({kHidden, kFeedForward}, kBf16);
  const at::Tensor main = at::zeros({kHidden, kFeedForward});
  add("accumulate/ours", 5 * static_cast<double>(small.nbytes()), "B/s", [=] { accumulate_(main, small); });
  add("accumulate/aten", 5 * static_cast<double>(small.nbytes()), "B/s", [=] { at::Tensor(main).add_(small); });
}

struct AttentionShape {
  int64_t batch, sequence, heads, kv_heads, head_size;
};

void add_attention() {
  for (const AttentionShape s : {AttentionShape{1, 2048, 12, 12, 64}, {4, 512, 12, 4, 64}, {1, 2048, 8, 2, 128}}) {
    const std::string name = "attention/S" + std::to_string(s.sequence) + "_D" + std::to_string(s.head_size) + "_N" +
                             std::to_string(s.heads) + "_K" + std::to_string(s.kv_heads);
    const at::Tensor joint = at::randn({s.batch, s.sequence, s.heads + 2 * s.kv_heads, s.head_size}, kBf16);
    const at::Tensor q = joint.narrow(2, 0, s.heads);
    const at::Tensor k = joint.narrow(2, s.heads, s.kv_heads);
    const at::Tensor v = joint.narrow(2, s.heads + s.kv_heads, s.kv_heads);
    const at::Tensor dout = at::randn({s.batch, s.sequence, s.heads, s.head_size}, kBf16);
    // Half of the scores are masked; two products forward, five backward.
    const double product = static_cast<double>(s.batch * s.heads * s.sequence * s.sequence * s.head_size);
    const AttentionOutput flash = attention_flash(q, k, v);
    const AttentionOutput unfused = attention_unfused(q, k, v);
    const at::Tensor keys = k.repeat_interleave(s.heads / s.kv_heads, 2).transpose(1, 2);
    const at::Tensor values = v.repeat_interleave(s.heads / s.kv_heads, 2).transpose(1, 2);
    add(name + "/forward/ours", 2 * product, "FLOP/s", [=] { attention_flash(q, k, v); });
    add(name + "/forward/aten", 2 * product, "FLOP/s",
        [=] { at::_scaled_dot_product_flash_attention_for_cpu(q.transpose(1, 2), keys, values, 0.0, true); });
    add(name + "/forward/unfused", 2 * product, "FLOP/s", [=] { attention_unfused(q, k, v); });
    add(name + "/backward/ours", 5 * product, "FLOP/s",
        [=] { attention_flash_backward(dout, q, k, v, flash.out_BSND, flash.saved); });
    add(name + "/backward/aten", 5 * product, "FLOP/s", [=] {
      at::_scaled_dot_product_flash_attention_for_cpu_backward(dout.transpose(1, 2), q.transpose(1, 2), keys, values,
                                                               flash.out_BSND.transpose(1, 2), flash.saved, 0.0, true);
    });
    add(name + "/backward/unfused", 5 * product, "FLOP/s",
        [=] { attention_unfused_backward(dout, q, k, v, unfused.saved); });
  }
  const at::Tensor a = at::randn({2048, 2048}, kBf16);
  add("gemm/2048", 2 * std::pow(2048.0, 3), "FLOP/s", [=] { benchmark::DoNotOptimize(at::matmul(a, a)); });
}

}  // namespace
}  // namespace layline::trainer::kernels

int main(int argc, char** argv) {
  using namespace layline::trainer::kernels;  // NOLINT(google-build-using-namespace)
  add_copy();
  add_rms_norm();
  add_rope();
  add_swiglu();
  add_cross_entropy();
  add_optimizer();
  add_attention();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
