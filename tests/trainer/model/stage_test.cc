// A whole model in one stage against the same Llama written with plain operators and autograd.
#include "layline/trainer/model/stage.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>

#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/model/head.h"
#include "layline/trainer/model/initialize.h"

namespace layline::trainer::model {
namespace {

constexpr int64_t kSequence = 7, kBatch = 3;

spec::Model tiny(int64_t num_kv_heads, bool tied) {
  spec::Model model;
  model.name = "tiny";
  model.num_layers = 2;
  model.hidden = 24;
  model.num_heads = 4;
  model.num_kv_heads = num_kv_heads;
  model.head_size = 10;  // heads · head size is not hidden
  model.ffn_hidden = 36;
  model.vocab = 41;
  model.tied_embeddings = tied;
  model.norm_epsilon = 1e-3;
  return model;
}

using Weights = std::map<std::string, at::Tensor>;

at::Tensor plain_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * at::rsqrt(x.square().mean(-1, true) + epsilon) * weight;
}

at::Tensor plain_rope(const at::Tensor& x_BNSD, double theta) {
  const int64_t half = x_BNSD.size(3) / 2;
  const auto options = x_BNSD.options();
  const at::Tensor frequencies = at::pow(theta, at::arange(half, options) * (-1.0 / static_cast<double>(half)));
  const at::Tensor angles = at::outer(at::arange(x_BNSD.size(2), options), frequencies);
  const at::Tensor a = x_BNSD.narrow(3, 0, half), b = x_BNSD.narrow(3, half, half);
  return at::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()}, 3);
}

at::Tensor plain_attention(const at::Tensor& x, const Weights& w, const std::string& layer, const spec::Model& m) {
  const auto heads = [&](const char* name, int64_t count) {
    return at::linear(x, w.at(layer + "self_attn." + name + ".weight"))
        .view({kBatch, kSequence, count, m.head_size})
        .transpose(1, 2);
  };
  const int64_t group = m.num_heads / m.num_kv_heads;
  const at::Tensor q = plain_rope(heads("q_proj", m.num_heads), m.rope.theta);
  const at::Tensor k = plain_rope(heads("k_proj", m.num_kv_heads), m.rope.theta).repeat_interleave(group, 1);
  const at::Tensor v = heads("v_proj", m.num_kv_heads).repeat_interleave(group, 1);
  const at::Tensor mask = at::ones({kSequence, kSequence}, at::kBool).triu(1);
  const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(m.head_size));
  const at::Tensor out = at::matmul(scores.masked_fill(mask, -1e300).softmax(-1), v);
  return at::linear(out.transpose(1, 2).flatten(2), w.at(layer + "self_attn.o_proj.weight"));
}

at::Tensor plain_loss(const at::Tensor& tokens, const at::Tensor& targets, const Weights& w, const spec::Model& m) {
  at::Tensor x = at::embedding(w.at("model.embed_tokens.weight"), tokens);
  for (int64_t i = 0; i < m.num_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    x = x + plain_attention(plain_norm(x, w.at(layer + "input_layernorm.weight"), m.norm_epsilon), w, layer, m);
    const at::Tensor y = plain_norm(x, w.at(layer + "post_attention_layernorm.weight"), m.norm_epsilon);
    const at::Tensor gate = at::linear(y, w.at(layer + "mlp.gate_proj.weight"));
    const at::Tensor up = at::linear(y, w.at(layer + "mlp.up_proj.weight"));
    x = x + at::linear(at::silu(gate) * up, w.at(layer + "mlp.down_proj.weight"));
  }
  x = plain_norm(x, w.at("model.norm.weight"), m.norm_epsilon);
  const at::Tensor head = m.tied_embeddings ? w.at("model.embed_tokens.weight") : w.at("lm_head.weight");
  return at::cross_entropy_loss(at::linear(x, head).flatten(0, 1), targets.flatten(), {}, at::Reduction::Sum,
                                kIgnoredTarget);
}

// Gives every group of a stage memory of its own.
void allocate(Stage& stage) {
  for (ParameterGroup* group : stage.groups()) {
    int64_t rows = 0;
    for (const Parameter* parameter : group->parameters) rows += parameter->local_shape[0];
    std::vector<int64_t> shape = group->parameters[0]->local_shape;
    shape[0] = rows;
    group->value = at::zeros(shape, at::kDouble);
    group->main_grad = at::zeros(shape, at::kDouble);
    int64_t first = 0;
    for (Parameter* parameter : group->parameters) {
      parameter->value = group->value.narrow(0, first, parameter->local_shape[0]);
      parameter->main_grad = group->main_grad.narrow(0, first, parameter->local_shape[0]);
      first += parameter->local_shape[0];
    }
  }
}

struct Kernels {
  layout::AttentionKernel attention;
  layout::NormKernel norm;
  layout::Checkpointing checkpointing;
};

class StageGradients : public testing::TestWithParam<std::tuple<int64_t, bool, Kernels>> {};

TEST_P(StageGradients, AreThoseOfPlainOperators) {
  const auto& [num_kv_heads, tied, kernels] = GetParam();
  const spec::Model model = tiny(num_kv_heads, tied);
  auto tp = comm::make_thread_groups("tp", 1, std::chrono::seconds(1));
  Context context;
  context.tp = tp[0].get();
  context.attention = kernels.attention;
  context.norm = kernels.norm;
  context.recomputes_attention_and_norms = kernels.checkpointing == layout::Checkpointing::kSelective;
  context.head_size = model.head_size;
  context.norm_epsilon = model.norm_epsilon;
  context.rope = kernels::make_rope_table(kSequence, model.head_size, {.theta = model.rope.theta}, at::kDouble);

  Stage stage(model, {0, model.num_layers, true, true}, {}, {kernels.checkpointing, 0});
  allocate(stage);
  Weights weights;
  for (Parameter& parameter : stage.parameters()) {
    initialize(parameter, 3);
    parameter.value.mul_(5);
    weights[parameter.name] = parameter.value.clone().requires_grad_(true);
  }
  const at::Tensor tokens = at::randint(model.vocab, {kBatch, kSequence}, at::kLong);
  at::Tensor targets = at::randint(model.vocab, {kBatch, kSequence}, at::kLong);
  targets[1].slice(0, 2, 5).fill_(kIgnoredTarget);

  const at::Tensor wanted = plain_loss(tokens, targets, weights, model) * 0.25;
  wanted.backward();
  const at::Tensor loss = stage.forward({{}, tokens.t(), targets.t(), 0.25}, context);
  Recorded({}, loss).backward({});
  EXPECT_NEAR(loss.item<double>(), wanted.item<double>(), 1e-12 * wanted.item<double>());
  for (const Parameter& parameter : stage.parameters()) {
    const at::Tensor& gradient = weights.at(parameter.name).grad();
    EXPECT_LE((parameter.main_grad - gradient).abs().max().item<double>(), 1e-12 * gradient.abs().max().item<double>())
        << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, StageGradients,
    testing::Combine(
        testing::Values(4, 2, 1), testing::Bool(),
        testing::Values(
            Kernels{layout::AttentionKernel::kFlash2, layout::NormKernel::kFused, layout::Checkpointing::kNone},
            Kernels{layout::AttentionKernel::kUnfused, layout::NormKernel::kUnfused, layout::Checkpointing::kNone},
            Kernels{layout::AttentionKernel::kFlash2, layout::NormKernel::kFused, layout::Checkpointing::kSelective},
            Kernels{layout::AttentionKernel::kUnfused, layout::NormKernel::kUnfused, layout::Checkpointing::kSelective},
            Kernels{layout::AttentionKernel::kFlash2, layout::NormKernel::kFused, layout::Checkpointing::kFull})));

}  // namespace
}  // namespace layline::trainer::model
