#include "layline/trainer/model/stage.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "layline/base/error.h"
#include "layline/trainer/model/head.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/model/norm.h"

namespace layline::trainer::model {

namespace {

constexpr double kInitialStd = 0.02;  // Hugging Face's initializer_range of Llama

void check_is_llama(const spec::Model& model) {
  const auto refuse = [&](const char* what) {
    throw base::InputError("model " + model.name, fmt::format("has {}; the trainer trains models of the Llama kind: "
                                                              "RMSNorm, RoPE, SwiGLU, no biases",
                                                              what));
  };
  if (model.mlp != spec::Mlp::kSwiglu) refuse("no SwiGLU");
  if (model.norm != spec::Norm::kRmsNorm) refuse("no RMSNorm");
  if (model.position != spec::Position::kRope) refuse("no rotary position embedding");
  if (model.qkv_bias || model.linear_bias) refuse("biases");
}

}  // namespace

Stage::Stage(const spec::Model& model, const layout::Stage& part, const Shard& shard, const StageOptions& options)
    : model_(model),
      part_(part),
      shard_(shard),
      options_(options),
      vocabulary_(vocabulary_part(model.vocab, shard.tp_size, shard.tp_rank)) {
  check_is_llama(model);
  for (int64_t i = 0; i < part.num_layers; ++i) add_layer(part.first_layer + i, i);
  add_ends(part.num_layers);
}

Parameter Stage::matrix(const std::string& name, int64_t rows, int64_t columns, int64_t sharded_dim) const {
  Parameter p;
  p.name = name;
  p.global_shape = p.local_shape = {rows, columns};
  p.initial_std = kInitialStd;
  p.sharded_dim = sharded_dim;
  p.sharding = TensorSharding::kSharded;
  p.local_shape[sharded_dim] /= shard_.tp_size;
  p.shard_offset = p.local_shape[sharded_dim] * shard_.tp_rank;
  return p;
}

Parameter Stage::vector(const std::string& name) const {
  Parameter p;
  p.name = name;
  p.global_shape = p.local_shape = {model_.hidden};
  p.decays = false;
  p.is_counted = shard_.tp_rank == 0;
  const bool sees_a_part = shard_.sequence_parallel && shard_.tp_size > 1;
  p.sharding = sees_a_part ? TensorSharding::kPartial : TensorSharding::kReplicated;
  return p;
}

Parameter Stage::vocabulary_matrix(const std::string& name) const {
  Parameter p = matrix(name, vocabulary_.size * shard_.tp_size, model_.hidden, 0);
  p.padded_dim0 = p.global_shape[0];
  p.global_shape[0] = model_.vocab;
  return p;
}

void Stage::add_group(ParameterGroup& group, std::vector<Parameter> parameters, int64_t bucket) {
  group.bucket = bucket;
  for (Parameter& parameter : parameters) {
    // Sums over other ranks come first: such parameters wait for the end of the backward pass together.
    if (parameter.sharding == TensorSharding::kPartial) group.bucket = part_.num_layers + 2;
    if (parameter.sharding == TensorSharding::kShardedReplicas) group.bucket = part_.num_layers + 3;
    parameters_.push_back(std::move(parameter));
    group.parameters.push_back(&parameters_.back());
  }
  groups_.push_back(&group);
}

void Stage::add_layer(int64_t index, int64_t bucket) {
  LayerWeights& weights = layers_.emplace_back();
  const int64_t tp = shard_.tp_size, head = model_.head_size;
  weights.num_heads = model_.num_heads / tp;
  weights.num_kv_heads = std::max<int64_t>(model_.num_kv_heads / tp, 1);
  const auto name = [&](const char* part) { return fmt::format("model.layers.{}.{}.weight", index, part); };

  const int64_t replicas = std::max<int64_t>(tp / model_.num_kv_heads, 1);  // ranks that share a key-value head
  const auto key_value = [&](const char* part) {
    Parameter p = matrix(name(part), model_.kv_width(), model_.hidden, 0);
    if (replicas == 1) return p;
    p.sharding = TensorSharding::kShardedReplicas;
    p.local_shape[0] = head;
    p.shard_offset = shard_.tp_rank / replicas * head;
    p.is_counted = shard_.tp_rank % replicas == 0;
    return p;
  };
  // GPT-2's scaling of the matrices that write into the residual stream.
  const auto output = [&](const char* part, int64_t columns) {
    Parameter p = matrix(name(part), model_.hidden, columns, 1);
    p.initial_std /= std::sqrt(2.0 * static_cast<double>(model_.num_layers));
    return p;
  };

  add_group(weights.attention_norm, {vector(name("input_layernorm"))}, bucket);
  add_group(weights.qkv,
            {matrix(name("self_attn.q_proj"), model_.attention_width(), model_.hidden, 0),
             key_value("self_attn.k_proj"), key_value("self_attn.v_proj")},
            bucket);
  add_group(weights.attention_output, {output("self_attn.o_proj", model_.attention_width())}, bucket);
  add_group(weights.mlp_norm, {vector(name("post_attention_layernorm"))}, bucket);
  add_group(weights.gate_up,
            {matrix(name("mlp.gate_proj"), model_.ffn_hidden, model_.hidden, 0),
             matrix(name("mlp.up_proj"), model_.ffn_hidden, model_.hidden, 0)},
            bucket);
  add_group(weights.down, {output("mlp.down_proj", model_.ffn_hidden)}, bucket);
}

void Stage::add_ends(int64_t bucket) {
  const bool shares_here = model_.tied_embeddings && part_.has_embedding && part_.has_head;
  if (part_.has_embedding) {
    Parameter table = vocabulary_matrix("model.embed_tokens.weight");
    table.is_tied = shard_.tied_across_stages;
    table.uses = shares_here ? 2 : 1;
    add_group(embedding_, {std::move(table)}, bucket);
  }
  if (!part_.has_head) return;
  // With the last layer's bucket, or in one of its own where there is no layer.
  add_group(final_norm_, {vector("model.norm.weight")}, std::max<int64_t>(part_.num_layers - 1, 0));
  if (shares_here) return;
  Parameter head = vocabulary_matrix(model_.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
  if (model_.tied_embeddings) {
    head.is_tied = head.is_tied_copy = true;
    head.is_counted = mutated(Mutation::kCountTiedTwice);
  }
  add_group(head_, {std::move(head)}, bucket + 1);
}

at::Tensor Stage::body(const Input& input, Context& context) const {
  at::Tensor hidden = part_.has_embedding ? embed(input.tokens_SB, embedding_, vocabulary_, context) : input.hidden;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const LayerWeights& weights = layers_[i];
    const bool recomputes = options_.checkpointing == layout::Checkpointing::kFull &&
                            (options_.full_layers == 0 || static_cast<int64_t>(i) < options_.full_layers) &&
                            at::GradMode::is_enabled();
    hidden = recomputes
                 ? checkpoint([&weights, &context](const at::Tensor& x) { return layer(x, weights, context); }, hidden)
                 : layer(hidden, weights, context);
  }
  return hidden;
}

at::Tensor Stage::forward(const Input& input, Context& context) const {
  const at::Tensor hidden = body(input, context);
  if (!part_.has_head) return hidden;
  const ParameterGroup& weight = head_.parameters.empty() ? embedding_ : head_;
  return head_loss(rms_norm(hidden, final_norm_, context), weight, vocabulary_, input.targets_SB, input.loss_scale,
                   context);
}

at::Tensor Stage::logits(const Input& input, Context& context) const {
  const at::NoGradGuard no_grad;
  const ParameterGroup& weight = head_.parameters.empty() ? embedding_ : head_;
  return head_logits(rms_norm(body(input, context), final_norm_, context).tensor, weight, context);
}

}  // namespace layline::trainer::model
