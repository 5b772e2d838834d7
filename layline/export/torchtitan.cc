// torchtitan: a TOML, and a module that adds the model's sizes to its Llama 3 flavors.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layline/export/data_text.h"
#include "layline/export/script.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;
using nlohmann::ordered_json;

constexpr Framework kThis = Framework::kTorchtitan;
constexpr const char* kScript = "torchtitan.sh";
constexpr const char* kConfig = "torchtitan.toml";
constexpr const char* kModule = "layline_model";

void check_model(const spec::Model& model) {
  const auto want = [&](bool good, const char* what) {
    if (!good) refuse(kThis, model.name, fmt::format("it has {}; the Llama 3 of torchtitan has not", what));
  };
  want(model.norm == spec::Norm::kRmsNorm, "LayerNorm");
  want(model.position == spec::Position::kRope, "no RoPE");
  want(model.mlp == spec::Mlp::kSwiglu, "no SwiGLU");
  want(!model.linear_bias && !model.qkv_bias, "biases");
  want(!model.tied_embeddings, "tied embeddings");
  want(model.attention_width() == model.hidden, "heads that are not hidden / heads wide");
  want(model.rope.scaling == spec::RopeScaling::kNone || model.rope.scaling == spec::RopeScaling::kLlama3,
       "scaled RoPE of another kind than Llama 3's");
}

void check_sharding(const Layout& layout) {
  if (layout.zero == 1) refuse(kThis, "zero1", "FSDP shards gradients too, and DDP nothing: it has ZeRO 0, 2 and 3");
  if (layout.hsdp == 1) refuse(kThis, "hsdp1", "a group of one rank shards nothing");
  const bool has_ddp = layout.zero == 0 && layout.dp > 1;
  if (has_ddp && (layout.tp > 1 || layout.pp > 1 || layout.cp > 1)) {
    refuse(kThis, "zero0", "DDP goes with no other axis");
  }
  if (layout.zero == 0 && layout.cp > 1) refuse(kThis, "zero0", "with context parallelism FSDP shards over its ranks");
}

void check_pipeline(const Plan& plan) {
  const Layout& layout = plan.layout;
  if (layout.schedule == ScheduleKind::kZeroBubble) {
    refuse(kThis, "sched=zb", "its zero-bubble schedules want at least two stages a rank, ZB-H1 has one");
  }
  if (layout.pp == 1 && layout.schedule != ScheduleKind::kOneFOneB) {
    refuse(kThis, fmt::format("pp1 sched={}", name_of(layout.schedule)),
           "without a pipeline it runs one micro-batch after the other");
  }
  const int64_t rounds = std::max<int64_t>(1, plan.num_micro_batches / layout.pp);
  if (layout.vp > 1 && plan.num_micro_batches % rounds != 0) {
    refuse(kThis, fmt::format("vp{}", layout.vp),
           fmt::format("{} micro-batches are no multiple of {} rounds of the interleaved schedule",
                       plan.num_micro_batches, rounds));
  }
  if (std::count(plan.stage_layers.begin(), plan.stage_layers.end(), 0) > 0) {
    refuse(kThis, "split", "a stage without a layer");
  }
}

void check(const Plan& plan) {
  const Layout& layout = plan.layout;
  check_model(plan.model());
  check_sharding(layout);
  check_pipeline(plan);
  want_tp_divides_kv_heads(kThis, plan);
  want_fused_norm(kThis, plan, "torch.compile fuses its norms");
  if (layout.tp > 1 && !layout.sp) {
    refuse(kThis, fmt::format("tp{} sp0", layout.tp), "its tensor parallelism always shards the sequence (sp)");
  }
  if (plan.job.sequence_length % (2 * layout.tp * layout.cp) != 0) {
    refuse(kThis, fmt::format("tp{} cp{}", layout.tp, layout.cp),
           fmt::format("2 tp cp = {} does not divide the sequence length {}", 2 * layout.tp * layout.cp,
                       plan.job.sequence_length));
  }
  if (layout.full_layers > 0) {
    refuse(kThis, fmt::format("ckpt=full:{}", layout.full_layers), "it recomputes all layers or every n-th one");
  }
  if (layout.attention != layout::AttentionKernel::kFlash2) {
    refuse(kThis, fmt::format("attn={}", name_of(layout.attention)), "attention is scaled_dot_product_attention");
  }
  if (plan.job.precision == spec::Precision::kFp16) refuse(kThis, "fp16", "it trains in bf16, fp8 or fp32");
}

std::vector<std::string> modules_of(int64_t first_layer, int64_t num_layers, bool is_first, bool is_last) {
  std::vector<std::string> names;
  if (is_first) names.emplace_back("tok_embeddings");
  for (int64_t i = 0; i < num_layers; ++i) names.push_back(fmt::format("layers.{}", first_layer + i));
  if (is_last) names.insert(names.end(), {"norm", "output"});
  return names;
}

ordered_json stages_of(const std::vector<int64_t>& layers) {
  ordered_json stages = ordered_json::array();
  int64_t first = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    stages.push_back(modules_of(first, layers[i], i == 0, i + 1 == layers.size()));
    first += layers[i];
  }
  return stages;
}

const char* schedule_of(ScheduleKind schedule) {
  if (schedule == ScheduleKind::kGpipe) return "GPipe";
  return schedule == ScheduleKind::kInterleaved ? "Interleaved1F1B" : "1F1B";
}

// FSDP that keeps the parameters after the forward pass is ZeRO-2.
const char* reshard_of(int zero) { return zero == 3 ? "always" : zero == 2 ? "never" : "default"; }

ordered_json parallelism_of(const Plan& plan) {
  const Layout& layout = plan.layout;
  const int64_t group = layout.hsdp > 0 ? layout.hsdp : layout.dp;
  const int64_t shard = layout.zero == 0 ? 1 : group;
  ordered_json parallelism = {{"data_parallel_replicate_degree", layout.dp / shard},
                              {"data_parallel_shard_degree", shard},
                              {"fsdp_reshard_after_forward", reshard_of(layout.zero)},
                              {"tensor_parallel_degree", layout.tp},
                              {"context_parallel_degree", layout.cp},
                              {"pipeline_parallel_degree", layout.pp}};
  if (layout.pp > 1) {
    parallelism["pipeline_parallel_schedule"] = schedule_of(layout.schedule);
    parallelism["pipeline_parallel_microbatch_size"] = layout.mb;
    parallelism["module_fqns_per_model_part"] = stages_of(plan.stage_layers);
  }
  return parallelism;
}

ordered_json checkpointing_of(const Layout& layout) {
  ordered_json json = {{"mode", std::string(name_of(layout.checkpointing))}};
  if (layout.checkpointing == Checkpointing::kSelective) json["selective_ac_option"] = "op";
  return json;
}

ordered_json training_of(const Plan& plan) {
  const Layout& layout = plan.layout;
  // All micro-batches of a step go through the pipeline at once; without one they accumulate.
  const int64_t local = layout.pp > 1 ? plan.job.global_batch / layout.dp : layout.mb;
  const bool is_fp32 = plan.job.precision == spec::Precision::kFp32;
  return {{"dataset", "c4_test"},
          {"local_batch_size", local},
          {"global_batch_size", plan.job.global_batch},
          {"seq_len", plan.job.sequence_length},
          {"steps", plan.options.steps},
          {"max_norm", 1.0},
          {"mixed_precision_param", is_fp32 ? "float32" : "bfloat16"},
          {"mixed_precision_reduce", "float32"}};
}

ordered_json config_of(const Plan& plan) {
  ordered_json model = {{"name", "llama3"}, {"flavor", plan.model().name}};
  if (plan.job.precision == spec::Precision::kFp8)
    model["converters"] = ordered_json::array({"quantize.linear.float8"});
  return {{"job", {{"dump_folder", "./outputs"}, {"description", plan.headline}}},
          {"model", model},
          {"optimizer", {{"name", "AdamW"}, {"lr", 3e-4}, {"beta1", 0.9}, {"beta2", 0.95}, {"weight_decay", 0.1}}},
          {"lr_scheduler", {{"warmup_steps", std::min<int64_t>(10, plan.options.steps)}, {"decay_type", "cosine"}}},
          {"metrics", {{"log_freq", 1}}},
          {"training", training_of(plan)},
          {"parallelism", parallelism_of(plan)},
          {"activation_checkpoint", checkpointing_of(plan.layout)},
          {"compile", {{"enable", true}}},
          {"experimental", {{"custom_import", kModule}}}};
}

// Llama 3's feed-forward width is a multiple of multiple_of: the width itself, once the multiplier has brought it
// below.
std::string module_text(const Plan& plan) {
  const spec::Model& model = plan.model();
  const double plain = std::floor(static_cast<double>(8 * model.hidden) / 3);
  const double multiplier = std::min(1.0, (static_cast<double>(model.ffn_hidden) - 0.5) / plain);
  const spec::Rope unscaled;
  const bool is_scaled = model.rope.scaling == spec::RopeScaling::kLlama3;
  const spec::Rope& rope = is_scaled ? model.rope : unscaled;
  return fmt::format(
      "# {}: adds the model to torchtitan's Llama 3 flavors.\n"
      "from torchtitan.models.llama3 import llama3_args\n"
      "from torchtitan.models.llama3.model.args import RoPEScalingArgs, TransformerModelArgs\n\n"
      "llama3_args[{}] = TransformerModelArgs(\n"
      "    dim={},\n    n_layers={},\n    n_heads={},\n    n_kv_heads={},\n    vocab_size={},\n"
      "    multiple_of={},\n    ffn_dim_multiplier={},\n    norm_eps={},\n    rope_theta={},\n"
      "    max_seq_len={},\n    rope_scaling_args=RoPEScalingArgs(\n        scaling_factor={},\n        "
      "low_freq_factor={},\n        high_freq_factor={},\n        original_max_position_embeddings={},\n    ),\n)\n",
      in_one_line(model.title), ordered_json(model.name).dump(), model.hidden, model.num_layers, model.num_heads,
      model.num_kv_heads, model.vocab, model.ffn_hidden, multiplier, model.norm_epsilon, model.rope.theta,
      plan.job.sequence_length, rope.factor, rope.low_freq_factor, rope.high_freq_factor,
      rope.original_max_position_embeddings);
}

}  // namespace

LaunchFiles write_torchtitan(const Plan& plan) {
  check(plan);
  Script script;
  script.framework = kThis;
  script.environment = {"PYTHONPATH=\"$PWD:${PYTHONPATH:-}\""};
  script.program = fmt::format("-m torchtitan.train --job.config_file {} \"$@\"", kConfig);
  LaunchFiles files;
  files.files.push_back({kConfig,
                         fmt::format("# {}\n# Written by `layline export` for {} {}.\n{}", plan.headline,
                                     title_of(kThis), version_of(kThis), toml_text(config_of(plan))),
                         false});
  files.files.push_back({fmt::format("{}.py", kModule), module_text(plan), false});
  files.files.push_back({kScript, script_text(plan, script), true});
  files.command = start_command(plan, kScript);
  files.notes.emplace_back("the data set and its tokenizer are torchtitan's test ones: give model.hf_assets_path");
  files.notes.emplace_back("steps and learning rate are stand-ins");
  return files;
}

}  // namespace layline::exporting
