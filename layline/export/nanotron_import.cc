// nanotron's YAML.

#include <fmt/format.h>

#include "layline/export/documents.h"
#include "layline/export/readers.h"
#include "layline/layout/layout_text.h"

namespace layline::exporting {
namespace {

using layout::Layout;
using layout::ScheduleKind;

constexpr int64_t kMaxAxis = layout::kMaxAxis;

int64_t wanted(Settings& yaml, const std::string& key, int64_t upper) {
  const std::optional<int64_t> value = yaml.whole(key, 1, upper);
  if (!value) yaml.fail(key, "is missing");
  return *value;
}

void read_model(Settings& yaml, Draft& draft) {
  const std::string at = "model.model_config.";
  for (const char* experts : {"moe_config.num_experts", "num_experts", "moe_num_experts"}) {
    if (yaml.whole_or(at + experts, 1, 0, kMaxCount) > 1) {
      yaml.fail(at + experts, "mixtures of experts cannot be priced");
    }
  }
  if (!yaml.has(at + "num_hidden_layers")) return;
  draft.model.emplace();
  spec::Model& model = *draft.model;
  model.num_layers = wanted(yaml, at + "num_hidden_layers", kMaxCount);
  model.hidden = wanted(yaml, at + "hidden_size", kMaxCount);
  model.num_heads = wanted(yaml, at + "num_attention_heads", kMaxCount);
  model.num_kv_heads = yaml.whole_or(at + "num_key_value_heads", model.num_heads, 1, kMaxCount);
  model.ffn_hidden = wanted(yaml, at + "intermediate_size", kMaxCount);
  model.vocab = wanted(yaml, at + "vocab_size", kMaxCount);
  if (model.hidden % model.num_heads != 0) {
    yaml.fail(at + "num_attention_heads", fmt::format("{} does not divide {}", model.num_heads, model.hidden));
  }
  model.head_size = model.hidden / model.num_heads;
  model.tied_embeddings = yaml.is_on(at + "tie_word_embeddings");
  model.qkv_bias = yaml.is_on(at + "attention_bias") || yaml.is_on(at + "is_qwen2_config");
  model.norm_epsilon = yaml.number(at + "rms_norm_eps", 0, 1).value_or(1e-6);
  model.rope.theta = yaml.number(at + "rope_theta", 1, 1e12).value_or(10000);
}

ScheduleKind schedule_of(Settings& yaml) {
  const std::string engine = yaml.text_or("parallelism.pp_engine", "afab");
  if (engine == "1f1b") return ScheduleKind::kOneFOneB;
  if (engine == "afab") return ScheduleKind::kGpipe;
  yaml.fail("parallelism.pp_engine", fmt::format("found \"{}\", want 1f1b or afab", engine));
}

}  // namespace

Draft read_nanotron(std::string_view text, const ImportOptions& options) {
  Settings yaml = yaml_settings(text, options.where);
  Draft draft;
  Layout& layout = draft.layout;
  draft.dp = wanted(yaml, "parallelism.dp", kMaxAxis);
  layout.tp = wanted(yaml, "parallelism.tp", kMaxAxis);
  layout.pp = wanted(yaml, "parallelism.pp", kMaxAxis);
  layout.cp = yaml.whole_or("parallelism.context_parallel_size", 1, 1, kMaxAxis);
  if (yaml.whole_or("parallelism.expert_parallel_size", 1, 1, kMaxAxis) > 1) {
    yaml.fail("parallelism.expert_parallel_size", "mixtures of experts cannot be priced");
  }
  const std::string mode = yaml.text_or("parallelism.tp_mode", "ALL_REDUCE");
  layout.sp = mode == "REDUCE_SCATTER" || mode == "reduce_scatter";
  if (!layout.sp && mode != "ALL_REDUCE" && mode != "all_reduce") {
    yaml.fail("parallelism.tp_mode", fmt::format("found \"{}\", want ALL_REDUCE or REDUCE_SCATTER", mode));
  }
  layout.schedule = schedule_of(yaml);
  if (yaml.is_on("parallelism.recompute_layer")) layout.checkpointing = layout::Checkpointing::kFull;
  layout.zero = static_cast<int>(yaml.whole_or("optimizer.zero_stage", 0, 0, 3));
  layout.mb = wanted(yaml, "tokens.micro_batch_size", kMaxAxis);
  const int64_t accumulation = wanted(yaml, "tokens.batch_accumulation_per_replica", kMaxAxis);
  draft.global_batch = layout.mb * draft.dp;
  if (draft.global_batch > kMaxCount / accumulation) yaml.fail("tokens", "the global batch is too large");
  draft.global_batch *= accumulation;
  draft.sequence_length = wanted(yaml, "tokens.sequence_length", kMaxCount);
  const std::string type = yaml.one_of("model.dtype", "bfloat16", {"bfloat16", "float16", "float32"});
  if (type == "float16") draft.precision = spec::Precision::kFp16;
  if (type == "float32") draft.precision = spec::Precision::kFp32;
  yaml.pass_over({"parallelism.tp_linear_async_communication"});
  read_model(yaml, draft);
  draft.ignored = yaml.ignored();
  return draft;
}

}  // namespace layline::exporting
