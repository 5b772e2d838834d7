// nanotron: one YAML.

#include <fmt/format.h>

#include <algorithm>

#include "layline/export/data_text.h"
#include "layline/export/script.h"
#include "layline/export/stage_layers.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;
using nlohmann::ordered_json;

constexpr Framework kThis = Framework::kNanotron;
constexpr const char* kScript = "nanotron.sh";
constexpr const char* kConfig = "nanotron.yaml";

void check_model(const spec::Model& model) {
  const auto want = [&](bool good, const char* what) {
    if (!good) refuse(kThis, model.name, fmt::format("it has {}; the Llama of nanotron has not", what));
  };
  want(model.norm == spec::Norm::kRmsNorm, "LayerNorm");
  want(model.position == spec::Position::kRope, "no RoPE");
  want(model.mlp == spec::Mlp::kSwiglu, "no SwiGLU");
  want(!model.linear_bias && !model.qkv_bias, "biases");
  want(model.attention_width() == model.hidden, "heads that are not hidden / heads wide");
  want(model.rope.scaling == spec::RopeScaling::kNone, "scaled RoPE");
}

// nanotron cuts the model itself; a layout must have its cut.
void check_split(const Plan& plan) {
  spec::Job job = plan.job;
  Layout own = plan.layout;
  own.split = layout::SplitKind::kThreshold;
  own.explicit_split.clear();
  const std::vector<int64_t> layers = stage_layers(job, own);
  if (layers == plan.stage_layers) return;
  refuse(kThis, "split",
         fmt::format("nanotron cuts the model itself, by parameters: {} and {} layers on the first and last stage, not "
                     "{} and {}",
                     layers.front(), layers.back(), plan.stage_layers.front(), plan.stage_layers.back()));
}

void check(const Plan& plan) {
  const Layout& layout = plan.layout;
  check_model(plan.model());
  want_tp_divides_kv_heads(kThis, plan);
  want_zero_up_to(kThis, plan, 1, "it has ZeRO-0 and ZeRO-1");
  want_fused_norm(kThis, plan, "its RMSNorm is a fused kernel");
  if (layout.cp > 1) {
    refuse(kThis, fmt::format("cp{}", layout.cp), "its context parallelism changes the attention kernel");
  }
  if (layout.vp > 1) refuse(kThis, fmt::format("vp{}", layout.vp), "it has no virtual stages");
  if (layout.schedule == ScheduleKind::kZeroBubble) refuse(kThis, "sched=zb", "it has 1F1B and GPipe (afab)");
  if (layout.checkpointing == Checkpointing::kSelective) {
    refuse(kThis, "ckpt=selective", "it recomputes whole layers or nothing");
  }
  if (layout.full_layers > 0) {
    refuse(kThis, fmt::format("ckpt=full:{}", layout.full_layers), "it recomputes all layers or none");
  }
  if (layout.attention != layout::AttentionKernel::kFlash2) {
    refuse(kThis, fmt::format("attn={}", name_of(layout.attention)), "its Llama runs FlashAttention 2");
  }
  if (plan.job.precision != spec::Precision::kBf16) {
    refuse(kThis, name_of(plan.job.precision), "fp32 accumulation of gradients is for bf16");
  }
  check_split(plan);
}

ordered_json parallelism_of(const Layout& layout) {
  return {{"dp", layout.dp},
          {"tp", layout.tp},
          {"pp", layout.pp},
          {"expert_parallel_size", 1},
          {"context_parallel_size", 1},
          {"pp_engine", layout.schedule == ScheduleKind::kGpipe ? "afab" : "1f1b"},
          {"tp_mode", layout.sp ? "REDUCE_SCATTER" : "ALL_REDUCE"},
          {"tp_linear_async_communication", layout.sp},
          {"recompute_layer", layout.checkpointing == Checkpointing::kFull}};
}

ordered_json model_of(const Plan& plan) {
  const spec::Model& from = plan.model();
  ordered_json config = {{"is_llama_config", true},
                         {"hidden_act", "silu"},
                         {"hidden_size", from.hidden},
                         {"intermediate_size", from.ffn_hidden},
                         {"num_hidden_layers", from.num_layers},
                         {"num_attention_heads", from.num_heads},
                         {"num_key_value_heads", from.num_kv_heads},
                         {"max_position_embeddings", plan.job.sequence_length},
                         {"rms_norm_eps", from.norm_epsilon},
                         {"rope_theta", from.rope.theta},
                         {"rope_interleaved", false},
                         {"tie_word_embeddings", from.tied_embeddings},
                         {"vocab_size", from.vocab}};
  return {{"model_config", config},
          {"init_method", {{"std", 0.02}}},
          {"dtype", "bfloat16"},
          {"make_vocab_size_divisible_by", 1}};
}

ordered_json optimizer_of(const Plan& plan) {
  const int64_t warmup = std::min<int64_t>(10, plan.options.steps);
  ordered_json rate = {{"learning_rate", 3e-4},
                       {"lr_warmup_steps", warmup},
                       {"lr_warmup_style", "linear"},
                       {"lr_decay_style", "cosine"},
                       {"min_decay_lr", 3e-5}};
  return {{"zero_stage", plan.layout.zero},
          {"accumulate_grad_in_fp32", true},
          {"clip_grad", 1.0},
          {"weight_decay", 0.1},
          {"optimizer_factory",
           {{"name", "adamW"},
            {"adam_beta1", 0.9},
            {"adam_beta2", 0.95},
            {"adam_eps", 1e-8},
            {"torch_adam_is_fused", true}}},
          {"learning_rate_scheduler", rate}};
}

ordered_json config_of(const Plan& plan) {
  const int64_t positions = plan.job.sequence_length;
  const ordered_json stage = {{"name", "stand-in"},
                              {"start_training_step", 1},
                              {"data", {{"dataset", nullptr}, {"seed", 1}, {"num_loading_workers", 1}}}};
  return {{"general", {{"project", "layline"}, {"run", plan.model().name}, {"seed", 1}}},
          {"parallelism", parallelism_of(plan.layout)},
          {"model", model_of(plan)},
          {"tokenizer", {{"tokenizer_name_or_path", "gpt2"}, {"tokenizer_max_length", nullptr}}},
          {"tokens",
           {{"sequence_length", positions},
            {"train_steps", plan.options.steps},
            {"micro_batch_size", plan.layout.mb},
            {"batch_accumulation_per_replica", plan.num_micro_batches},
            {"val_check_interval", -1}}},
          {"optimizer", optimizer_of(plan)},
          {"checkpoints", {{"checkpoints_path", "checkpoints"}, {"checkpoint_interval", 1'000'000}}},
          {"logging", {{"log_level", "info"}, {"iteration_step_info_interval", 1}}},
          {"data_stages", ordered_json::array({stage})}};
}

}  // namespace

LaunchFiles write_nanotron(const Plan& plan) {
  check(plan);
  Script script;
  script.framework = kThis;
  script.environment = {"CUDA_DEVICE_MAX_CONNECTIONS=1"};
  script.checkout = "NANOTRON_PATH";
  script.program = fmt::format("\"$NANOTRON_PATH/run_train.py\" --config-file {}", kConfig);
  LaunchFiles files;
  files.files.push_back({kConfig,
                         fmt::format("# {}\n# Written by `layline export` for {} {}.\n{}", plan.headline,
                                     title_of(kThis), version_of(kThis), yaml_text(config_of(plan))),
                         false});
  files.files.push_back({kScript, script_text(plan, script), true});
  files.command = start_command(plan, kScript);
  files.notes.emplace_back("without a data set nanotron makes up tokens: fill in data_stages and tokenizer");
  files.notes.emplace_back("steps and learning rate are stand-ins");
  return files;
}

}  // namespace layline::exporting
