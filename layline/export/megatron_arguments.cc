#include "layline/export/megatron_arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace layline::exporting {
namespace {

using spec::Model;

void add_attention(Framework framework, const Model& model, Arguments& lines) {
  if (framework == Framework::kDeepspeed) {
    if (model.num_kv_heads != model.num_heads) {
      lines.push_back(fmt::format("--num-key-value-heads {}", model.num_kv_heads));
    }
    return;
  }
  if (model.num_kv_heads != model.num_heads) {
    lines.push_back(fmt::format("--group-query-attention --num-query-groups {}", model.num_kv_heads));
  }
}

void add_feed_forward(Framework framework, const Model& model, Arguments& lines) {
  lines.push_back(fmt::format("--ffn-hidden-size {}", model.ffn_hidden));
  if (model.mlp == spec::Mlp::kSwiglu) lines.emplace_back("--swiglu");
  if (model.mlp == spec::Mlp::kSquaredRelu) lines.emplace_back("--squared-relu");
  if (!model.linear_bias) lines.emplace_back("--disable-bias-linear");
  if (model.qkv_bias && !model.linear_bias) {
    if (framework == Framework::kDeepspeed) {
      refuse(framework, model.name, "it has biases on queries, keys and values alone");
    }
    lines.emplace_back("--add-qkv-bias");
  }
  if (!model.qkv_bias && model.linear_bias) refuse(framework, model.name, "it has biases on all but the QKV layers");
}

void add_norm(Framework framework, const Model& model, Arguments& lines) {
  const bool is_rms = model.norm == spec::Norm::kRmsNorm;
  const bool is_deepspeed = framework == Framework::kDeepspeed;
  lines.push_back(fmt::format("--normalization {}",
                              is_deepspeed ? (is_rms ? "rmsnorm" : "layernorm") : (is_rms ? "RMSNorm" : "LayerNorm")));
  lines.push_back(fmt::format("--{} {}", is_deepspeed ? "layernorm-epsilon" : "norm-epsilon", model.norm_epsilon));
}

void add_rope_scaling(Framework framework, const Model& model, Arguments& lines) {
  const spec::Rope& rope = model.rope;
  if (rope.scaling == spec::RopeScaling::kNone) return;
  const bool is_llama3 = rope.scaling == spec::RopeScaling::kLlama3 && rope.low_freq_factor == 1 &&
                         rope.high_freq_factor == 4 && rope.original_max_position_embeddings == 8192;
  if (framework != Framework::kMegatron || !is_llama3) {
    refuse(framework, model.name, "its RoPE is scaled in a way that has no option");
  }
  lines.push_back(fmt::format("--use-rope-scaling --rope-scaling-factor {}", rope.factor));
}

void add_position(Framework framework, const Plan& plan, Arguments& lines) {
  const Model& model = plan.model();
  const int64_t positions = std::max(model.max_sequence_length, plan.job.sequence_length);
  lines.push_back(fmt::format("--max-position-embeddings {}", positions));
  if (model.position == spec::Position::kAlibi) refuse(framework, model.name, "it has ALiBi positions");
  if (model.position == spec::Position::kLearned) {
    if (framework == Framework::kMegatron) lines.emplace_back("--position-embedding-type learned_absolute");
    return;
  }
  if (framework == Framework::kDeepspeed) {
    lines.emplace_back("--use-rotary-position-embeddings");
    if (model.rope.theta != 10000)
      lines.push_back(fmt::format("--rotary-position-embeddings-theta {}", static_cast<int64_t>(model.rope.theta)));
  } else {
    lines.emplace_back("--position-embedding-type rope");
    lines.push_back(fmt::format("--rotary-base {}", static_cast<int64_t>(model.rope.theta)));
  }
  add_rope_scaling(framework, model, lines);
}

}  // namespace

Arguments model_arguments(Framework framework, const Plan& plan) {
  const Model& model = plan.model();
  Arguments lines;
  lines.push_back(fmt::format("--num-layers {}", model.num_layers));
  lines.push_back(fmt::format("--hidden-size {}", model.hidden));
  lines.push_back(fmt::format("--num-attention-heads {}", model.num_heads));
  if (model.attention_width() != model.hidden) lines.push_back(fmt::format("--kv-channels {}", model.head_size));
  add_attention(framework, model, lines);
  add_feed_forward(framework, model, lines);
  add_norm(framework, model, lines);
  add_position(framework, plan, lines);
  if (!model.tied_embeddings) lines.emplace_back("--untie-embeddings-and-output-weights");
  lines.emplace_back("--hidden-dropout 0 --attention-dropout 0");
  return lines;
}

Arguments batch_arguments(const Plan& plan) {
  return {fmt::format("--micro-batch-size {}", plan.layout.mb),
          fmt::format("--global-batch-size {}", plan.job.global_batch),
          fmt::format("--seq-length {}", plan.job.sequence_length),
          fmt::format("--train-iters {}", plan.options.steps),
          "--lr 3.0e-4 --min-lr 3.0e-5 --lr-decay-style cosine",
          "--adam-beta1 0.9 --adam-beta2 0.95 --weight-decay 0.1 --clip-grad 1.0"};
}

}  // namespace layline::exporting
