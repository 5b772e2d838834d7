// NeMo's YAML: strategy, model and data beside each other as `layline export` writes them, under trainer as NeMo 2
// saves them, or all under model as NeMo 1 had them.

#include <fmt/format.h>

#include <algorithm>

#include "layline/export/documents.h"
#include "layline/export/readers.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/stage_split.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;

constexpr int64_t kMaxAxis = layout::kMaxAxis;

// Where NeMo's versions keep a setting.
std::string place_of(const Settings& yaml, const std::string& group, const std::string& key) {
  const std::vector<std::string> groups = {group,   "trainer." + group, "model.config",
                                           "model", "model." + group,   "trainer.strategy.ddp"};
  for (const std::string& prefix : groups) {
    std::string place = fmt::format("{}.{}", prefix, key);
    if (yaml.has(place)) return place;
  }
  return group + "." + key;
}

int64_t axis(Settings& yaml, const std::string& key) {
  return yaml.whole_or(place_of(yaml, "strategy", key), 1, 1, kMaxAxis);
}

int64_t size(Settings& yaml, const std::string& key, int64_t fallback) {
  return yaml.whole_or(place_of(yaml, "model", key), fallback, 1, kMaxCount);
}

// What is no Llama's in NeMo 1, whose files say so; NeMo 2's say the class.
void read_kind(Settings& yaml, int64_t sequence_length, spec::Model& model) {
  if (!yaml.has("model.activation")) return;
  const std::string activation = yaml.text_or("model.activation", "gelu");
  const bool is_gated = activation.ends_with("swiglu") || activation.ends_with("geglu");
  model.mlp = is_gated ? spec::Mlp::kSwiglu : activation == "squared-relu" ? spec::Mlp::kSquaredRelu : spec::Mlp::kGelu;
  const bool is_rms = yaml.text_or("model.normalization", "layernorm") == "rmsnorm";
  model.norm = is_rms ? spec::Norm::kRmsNorm : spec::Norm::kLayerNorm;
  model.linear_bias = yaml.flag("model.bias").value_or(true);
  model.qkv_bias = model.qkv_bias || model.linear_bias;
  model.tied_embeddings = yaml.flag("model.share_embeddings_and_output_weights").value_or(true);
  if (yaml.text_or("model.position_embedding_type", "learned_absolute") == "learned_absolute") {
    model.position = spec::Position::kLearned;
    const std::string positions = yaml.text_or("model.max_position_embeddings", "$");
    const bool is_reference = positions.starts_with("$");  // ${.encoder_seq_length}
    model.max_sequence_length = is_reference ? sequence_length : size(yaml, "max_position_embeddings", 1);
  }
}

void read_model(Settings& yaml, Draft& draft) {
  const std::string experts = place_of(yaml, "model", "num_moe_experts");
  if (yaml.whole_or(experts, 1, 0, kMaxCount) > 1) yaml.fail(experts, "mixtures of experts cannot be priced");
  const int64_t layers = size(yaml, "num_layers", 0);
  if (layers == 0) return;
  draft.model.emplace();
  spec::Model& model = *draft.model;
  model.num_layers = layers;
  model.hidden = size(yaml, "hidden_size", 0);
  model.num_heads = size(yaml, "num_attention_heads", 0);
  if (model.hidden == 0 || model.num_heads == 0) yaml.fail("model", "hidden_size or num_attention_heads is missing");
  model.num_kv_heads = size(yaml, "num_query_groups", model.num_heads);
  model.head_size = size(yaml, "kv_channels", model.hidden / model.num_heads);
  model.ffn_hidden = size(yaml, "ffn_hidden_size", 4 * model.hidden);
  draft.knows_vocab = yaml.has(place_of(yaml, "model", "vocab_size"));
  model.vocab = size(yaml, "vocab_size", 32000);
  model.norm_epsilon = yaml.number(place_of(yaml, "model", "layernorm_epsilon"), 0, 1).value_or(1e-5);
  model.rope.theta = yaml.number(place_of(yaml, "model", "rotary_base"), 1, 1e12).value_or(10000);
  const std::optional<double> scale = yaml.number(place_of(yaml, "model", "scale_factor"), 1, 1e12);
  if (scale) {
    model.rope.scaling = spec::RopeScaling::kLlama3;
    model.rope.factor = *scale;
    yaml.pass_over({"model.low_freq_factor", "model.high_freq_factor", "model.old_context_len"});
  }
  model.tied_embeddings = yaml.is_on(place_of(yaml, "model", "share_embeddings_and_output_weights"));
  model.qkv_bias = yaml.is_on(place_of(yaml, "model", "add_qkv_bias"));
  read_kind(yaml, draft.sequence_length, model);
}

// NeMo 1 says activations_checkpoint_granularity where NeMo 2 says recompute_granularity, and so on.
std::string recompute_key(const Settings& yaml, const std::string& key) {
  const std::string older = "model.activations_checkpoint_" + key;
  return yaml.has(older) ? older : place_of(yaml, "model", "recompute_" + key);
}

void read_recomputation(Settings& yaml, Draft& draft) {
  const std::string granularity_key = recompute_key(yaml, "granularity");
  const std::string granularity = yaml.text_or(granularity_key, "none");
  const std::string method = yaml.one_of(recompute_key(yaml, "method"), "uniform", {"uniform", "block"});
  const int64_t layers = yaml.whole_or(recompute_key(yaml, "num_layers"), 1, 1, kMaxAxis);
  if (granularity == "selective") draft.layout.checkpointing = Checkpointing::kSelective;
  if (granularity != "full" && granularity != "selective" && granularity != "none") {
    yaml.fail(granularity_key, fmt::format("found \"{}\", want selective or full", granularity));
  }
  if (granularity != "full") return;
  draft.layout.checkpointing = Checkpointing::kFull;
  if (method == "block") draft.layout.full_layers = layers;
}

void read_split(Settings& yaml, Draft& draft) {
  const auto first = yaml.whole(place_of(yaml, "model", "num_layers_in_first_pipeline_stage"), 1, kMaxAxis);
  const auto last = yaml.whole(place_of(yaml, "model", "num_layers_in_last_pipeline_stage"), 1, kMaxAxis);
  if (!draft.model || (!first && !last)) return;
  const auto layers = layout::split_with_ends(draft.model->num_layers, draft.layout.pp, first, last);
  if (!layers) yaml.fail("model.num_layers", "what the first and last stage leave is no multiple of the others");
  draft.stage_layers = *layers;
}

layout::AttentionKernel attention_of(Settings& yaml) {
  using layout::AttentionKernel;
  const std::string backend = yaml.text_or(place_of(yaml, "model", "attention_backend"), "auto");
  const bool is_fused = yaml.flag(place_of(yaml, "model", "masked_softmax_fusion")).value_or(true);
  if (backend.find("unfused") == std::string::npos && backend.find("local") == std::string::npos) {
    return AttentionKernel::kFlash2;
  }
  return is_fused ? AttentionKernel::kFusedSoftmax : AttentionKernel::kUnfused;
}

spec::Precision precision_of(Settings& yaml) {
  const std::string key = yaml.first_of({"precision.precision", "trainer.plugins.precision", "trainer.precision"});
  const std::string precision = yaml.text_or(key, "bf16-mixed");
  // "hybrid" or "e4m3" in NeMo 2, a flag in NeMo 1.
  const std::string fp8 = yaml.text_or(yaml.first_of({"precision.fp8", "trainer.plugins.fp8", "model.fp8"}), "");
  if (!fp8.empty() && fp8 != "false" && fp8 != "False") return spec::Precision::kFp8;
  if (precision.starts_with("bf16")) return spec::Precision::kBf16;
  return precision.starts_with("16") ? spec::Precision::kFp16 : spec::Precision::kFp32;
}

}  // namespace

Draft read_nemo(std::string_view text, const ImportOptions& options) {
  Settings yaml = yaml_settings(text, options.where);
  Draft draft;
  Layout& layout = draft.layout;
  if (!yaml.has(place_of(yaml, "strategy", "tensor_model_parallel_size"))) {
    yaml.fail("strategy.tensor_model_parallel_size", "is missing");
  }
  layout.tp = axis(yaml, "tensor_model_parallel_size");
  layout.pp = axis(yaml, "pipeline_model_parallel_size");
  layout.vp = axis(yaml, "virtual_pipeline_model_parallel_size");
  layout.cp = axis(yaml, "context_parallel_size");
  if (axis(yaml, "expert_model_parallel_size") > 1) {
    yaml.fail("strategy.expert_model_parallel_size", "mixtures of experts cannot be priced");
  }
  layout.sp = yaml.is_on(place_of(yaml, "strategy", "sequence_parallel"));
  layout.schedule = layout.vp > 1 ? layout::ScheduleKind::kInterleaved : layout::ScheduleKind::kOneFOneB;
  const std::string sharding = place_of(yaml, "ddp", "use_distributed_optimizer");
  const bool is_nemo1 = yaml.text_or("model.optim.name", "") == "distributed_fused_adam";
  layout.zero = yaml.is_on(sharding) || is_nemo1 ? 1 : 0;
  layout.mb = yaml.whole_or(place_of(yaml, "data", "micro_batch_size"), 1, 1, kMaxAxis);
  draft.global_batch = yaml.whole_or(place_of(yaml, "data", "global_batch_size"), 0, 1, kMaxCount);
  draft.sequence_length = yaml.whole_or(
      yaml.first_of({"data.seq_length", "model.seq_length", "model.encoder_seq_length"}), 0, 1, kMaxCount);
  const auto devices = yaml.whole("trainer.devices", 1, kMaxAxis);
  if (devices) draft.num_gpus = *devices * yaml.whole_or("trainer.num_nodes", 1, 1, kMaxAxis);
  layout.attention = attention_of(yaml);
  read_model(yaml, draft);
  read_recomputation(yaml, draft);
  read_split(yaml, draft);
  draft.precision = precision_of(yaml);
  yaml.pass_over({"strategy.pipeline_dtype", "optim.use_distributed_optimizer", "model.seq_length"});
  draft.ignored = yaml.ignored();
  return draft;
}

}  // namespace layline::exporting
