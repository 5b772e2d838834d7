#include "layline/trainer/measure/kernels.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "layline/spec/measured_names.h"
#include "layline/trainer/kernels/adamw.h"
#include "layline/trainer/kernels/attention.h"
#include "layline/trainer/kernels/cross_entropy.h"
#include "layline/trainer/kernels/embedding.h"
#include "layline/trainer/kernels/rms_norm.h"
#include "layline/trainer/kernels/rope.h"
#include "layline/trainer/kernels/swiglu.h"
#include "layline/trainer/measure/operands.h"
#include "layline/trainer/model/norm.h"
#include "layline/trainer/model/parallel_linear.h"

namespace layline::trainer::measure {
namespace {

namespace m = spec::measured;

constexpr int64_t kRow = 512;  // elements of a row: of a token
constexpr int64_t kHeads = 4;  // of a token, where heads matter
constexpr int64_t kHeadSize = 64;
constexpr int64_t kBatch = 4;  // sequences, where their order matters
constexpr int64_t kQueriesPerKey = 3;
constexpr double kEpsilon = 1e-5;

int64_t whole(double size) { return static_cast<int64_t>(size); }

Operation run_only(std::function<void(int64_t)> run) { return {{}, std::move(run)}; }

Operation make_norm(std::string_view what, at::ScalarType dtype, int64_t elements) {
  const Operands x = Operands::random({elements / kRow, kRow}, dtype),
                 dy = Operands::random({elements / kRow, kRow}, dtype);
  const at::Tensor weight = at::ones({kRow}, dtype), gradient = at::zeros({kRow}, at::kFloat);
  if (what == m::kNorm) return run_only([=](int64_t i) { kernels::rms_norm(x[i], weight, kEpsilon); });
  const at::Tensor rstd = kernels::rms_norm(x[0], weight, kEpsilon).rstd_T;
  return run_only([=](int64_t i) { kernels::rms_norm_backward(dy[i], x[i], rstd, weight, gradient); });
}

// By separate operators, through autograd: as the trainer's.
Operation make_unfused_norm(std::string_view what, at::ScalarType dtype, int64_t elements) {
  struct Norm {
    model::ParameterGroup weight;
    model::Context context;
    model::Recorded recorded;
  };
  const auto norm = std::make_shared<Norm>();
  norm->weight.value = at::ones({kRow}, dtype);
  norm->weight.main_grad = at::zeros({kRow}, at::kFloat);
  norm->context.norm = layout::NormKernel::kUnfused;
  const Operands x = Operands::random({elements / kRow, kRow}, dtype);
  const auto forward = [=](int64_t i) {
    const at::AutoGradMode grad(true);
    const at::Tensor input = x[i].detach().requires_grad_(true);
    norm->recorded = model::Recorded(input, model::rms_norm(input, norm->weight, norm->context).tensor);
  };
  if (what == m::kUnfusedNorm) return run_only(forward);
  return {forward, [=](int64_t i) { norm->recorded.backward(x[i]); }};
}

Operation make_swiglu(std::string_view what, at::ScalarType dtype, int64_t elements) {
  const Operands gate_up = Operands::random({elements / kRow, 2 * kRow}, dtype);
  const Operands dy = Operands::random({elements / kRow, kRow}, dtype);
  if (what == m::kSwiglu) return run_only([=](int64_t i) { kernels::swiglu(gate_up[i]); });
  return run_only([=](int64_t i) { kernels::swiglu_backward(dy[i], gate_up[i]); });
}

// Sequence first in memory, batch first as a view: as heads are in the trainer.
Operation make_rope(at::ScalarType dtype, int64_t elements) {
  const int64_t sequence = elements / (kBatch * kHeads * kHeadSize);
  const Operands x = Operands::zeros({sequence, kBatch, kHeads, kHeadSize}, dtype);
  const kernels::RopeTable table = kernels::make_rope_table(sequence, kHeadSize, {}, dtype);
  return run_only([=](int64_t i) { kernels::rope_(x[i].transpose(0, 1), table, false); });
}

Operation make_copy(at::ScalarType dtype, int64_t elements) {
  const int64_t sequence = elements / (kBatch * kHeads * kHeadSize);
  const Operands x = Operands::random({kBatch, sequence, kHeads, kHeadSize}, dtype);
  return run_only([=](int64_t i) { return x[i].transpose(0, 1).flatten(2).contiguous(); });
}

Operation make_rows(std::string_view what, at::ScalarType dtype, int64_t elements) {
  constexpr int64_t kVocabulary = 256;
  const int64_t tokens = elements / kRow;
  const at::Tensor rows = at::randint(kVocabulary, {tokens}, at::kLong);
  const at::Tensor table = at::randn({kVocabulary, kRow}, at::kFloat).to(dtype);
  const at::Tensor gradient = at::zeros({kVocabulary, kRow}, at::kFloat);
  const Operands dy = Operands::random({tokens, kRow}, dtype);
  if (what == m::kReadRows) return run_only([=](int64_t) { kernels::read_rows(table, rows); });
  return run_only([=](int64_t i) { kernels::add_to_rows_(gradient, rows, dy[i]); });
}

Operation make_cross_entropy(at::ScalarType dtype, int64_t elements) {
  const int64_t tokens = elements / kRow;
  const Operands logits = Operands::zeros({tokens, kRow}, dtype);
  const at::Tensor targets = at::randint(kRow, {tokens}, at::kLong), scale = at::ones({tokens}, at::kFloat);
  return run_only([=](int64_t i) { kernels::cross_entropy_fused_(logits[i], targets, scale, kRow); });
}

Operation make_adamw(at::ScalarType dtype, int64_t elements) {
  const Operands master = Operands::zeros({elements}, at::kFloat), weights = Operands::zeros({elements}, dtype);
  const Operands gradient = Operands::random({elements}, at::kFloat);
  const Operands exp_avg = Operands::zeros({elements}, at::kFloat),
                 exp_avg_sq = Operands::zeros({elements}, at::kFloat);
  const kernels::AdamWStep step{.step = 10,
                                .learning_rate = 1e-6,
                                .beta1 = 0.9,
                                .beta2 = 0.95,
                                .epsilon = 1e-8,
                                .weight_decay = 0.1,
                                .gradient_scale = 1};
  return run_only([=](int64_t i) {
    std::optional<at::Tensor> compute;
    if (dtype != at::kFloat) compute = weights[i];
    kernels::adamw_(master[i], exp_avg[i], exp_avg_sq[i], gradient[i], compute, step);
  });
}

}  // namespace

Operation make_product(std::string_view what, at::ScalarType dtype, const std::vector<double>& sizes) {
  const bool is_known = what == m::kProductForward || what == m::kProductInput || what == m::kProductWeight;
  if (!is_known) return {};
  const int64_t tokens = whole(sizes[0]), inputs = whole(sizes[1]), outputs = whole(sizes[2]);
  const Operands x = Operands::random({tokens, inputs}, dtype), dy = Operands::random({tokens, outputs}, dtype);
  const Operands weight = Operands::random({outputs, inputs}, dtype);
  if (what == m::kProductForward) return run_only([=](int64_t i) { at::linear(x[i], weight[i]); });
  if (what == m::kProductInput) return run_only([=](int64_t i) { at::matmul(dy[i], weight[i]); });
  auto group = std::make_shared<model::ParameterGroup>();
  const Operands gradients = Operands::zeros({outputs, inputs}, at::kFloat);
  return run_only([=](int64_t i) {
    group->main_grad = gradients[i];
    model::add_product(*group, dy[i], x[i]);
  });
}

Operation make_attention(std::string_view what, at::ScalarType dtype, const std::vector<double>& sizes) {
  const bool is_forward = what == m::kAttentionForward || what == m::kUnfusedForward;
  const bool is_unfused = what == m::kUnfusedForward || what == m::kUnfusedBackward;
  if (!is_forward && what != m::kAttentionBackward && what != m::kUnfusedBackward) return {};
  const int64_t batch = whole(sizes[0]) / kQueriesPerKey, sequence = whole(sizes[1]);
  const Operands q = Operands::random({batch, sequence, kQueriesPerKey, kHeadSize}, dtype);
  const Operands k = Operands::random({batch, sequence, 1, kHeadSize}, dtype);
  const Operands &dout = q, &v = k;
  const auto forward = [=](int64_t i) {
    return is_unfused ? kernels::attention_unfused(q[i], k[i], v[i]) : kernels::attention_flash(q[i], k[i], v[i]);
  };
  if (is_forward) return run_only([=](int64_t i) { forward(i); });
  const kernels::AttentionOutput output = forward(0);
  return run_only([=](int64_t i) {
    if (is_unfused) {
      kernels::attention_unfused_backward(dout[i], q[i], k[i], v[i], output.saved);
    } else {
      kernels::attention_flash_backward(dout[i], q[i], k[i], v[i], output.out_BSND, output.saved);
    }
  });
}

Operation make_kernel(std::string_view what, at::ScalarType dtype, int64_t elements) {
  if (what == m::kNorm || what == m::kNormBackward) return make_norm(what, dtype, elements);
  if (what == m::kUnfusedNorm || what == m::kUnfusedNormBackward) return make_unfused_norm(what, dtype, elements);
  if (what == m::kSwiglu || what == m::kSwigluBackward) return make_swiglu(what, dtype, elements);
  if (what == m::kRope) return make_rope(dtype, elements);
  if (what == m::kCopy) return make_copy(dtype, elements);
  if (what == m::kReadRows || what == m::kAddToRows) return make_rows(what, dtype, elements);
  if (what == m::kCrossEntropy) return make_cross_entropy(dtype, elements);
  if (what == m::kAdamw) return make_adamw(dtype, elements);
  if (what == m::kAdd) {
    const Operands a = Operands::random({elements}, dtype), b = Operands::random({elements}, dtype);
    return run_only([=](int64_t i) { return a[i] + b[i]; });
  }
  const Operands wide = Operands::zeros({elements}, at::kFloat);
  if (what == m::kSumOfSquares) return run_only([=](int64_t i) { kernels::sum_of_squares(wide[i]); });
  if (what == m::kZero) return run_only([=](int64_t i) { wide[i].zero_(); });
  return {};
}

}  // namespace layline::trainer::measure
