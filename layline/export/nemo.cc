// NeMo 2: a YAML of strategy, model and data, and the Python that hands it to NeMo's API.

#include <fmt/format.h>

#include <algorithm>

#include "layline/export/data_text.h"
#include "layline/export/script.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;
using nlohmann::ordered_json;

constexpr Framework kThis = Framework::kNemo;
constexpr const char* kScript = "nemo.sh";
constexpr const char* kConfig = "nemo.yaml";
constexpr const char* kProgram = "nemo_train.py";

// Reads nemo.yaml; everything that this file decides is there.
constexpr const char* kPython = R"(import sys

import torch
import yaml
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig
from megatron.core.transformer.enums import AttnBackend
from nemo import lightning as nl
from nemo.collections import llm

with open(sys.argv[1]) as file:
    config = yaml.safe_load(file)

model = dict(config["model"])
model["attention_backend"] = AttnBackend[model["attention_backend"]]
# Llama 3.1's configuration is Llama's with scaled RoPE.
kind = llm.Llama31Config if "scale_factor" in model else llm.LlamaConfig
strategy = dict(config["strategy"])
strategy["pipeline_dtype"] = getattr(torch, strategy["pipeline_dtype"])
strategy["ddp"] = DistributedDataParallelConfig(**config["ddp"])

llm.pretrain(
    model=llm.LlamaModel(kind(**model)),
    data=llm.MockDataModule(**config["data"]),
    trainer=nl.Trainer(
        accelerator="gpu",
        strategy=nl.MegatronStrategy(**strategy),
        plugins=nl.MegatronMixedPrecision(**config["precision"]),
        limit_val_batches=0,
        num_sanity_val_steps=0,
        **config["trainer"],
    ),
    optim=nl.MegatronOptimizerModule(config=OptimizerConfig(**config["optim"])),
)
)";

void check_model(const spec::Model& model) {
  const auto want = [&](bool good, const char* what) {
    if (!good) refuse(kThis, model.name, fmt::format("it has {}; llm.LlamaConfig has not", what));
  };
  want(model.norm == spec::Norm::kRmsNorm, "LayerNorm");
  want(model.position == spec::Position::kRope, "no RoPE");
  want(model.mlp == spec::Mlp::kSwiglu, "no SwiGLU");
  want(!model.linear_bias, "biases");
  want(model.rope.scaling == spec::RopeScaling::kNone || model.rope.scaling == spec::RopeScaling::kLlama3,
       "scaled RoPE of another kind than Llama 3's");
}

bool has_equal_middle(const std::vector<int64_t>& layers) {
  return layers.size() <= 2 || std::equal(layers.begin() + 2, layers.end() - 1, layers.begin() + 1);
}

void check(const Plan& plan) {
  const Layout& layout = plan.layout;
  check_model(plan.model());
  want_tp_divides_kv_heads(kThis, plan);
  want_zero_up_to(kThis, plan, 1, "MegatronStrategy's distributed optimizer is ZeRO-1");
  want_fused_norm(kThis, plan, "TransformerEngine's norms are always fused");
  if (layout.schedule == ScheduleKind::kGpipe || layout.schedule == ScheduleKind::kZeroBubble) {
    refuse(kThis, fmt::format("sched={}", name_of(layout.schedule)), "it runs 1F1B and interleaved 1F1B only");
  }
  if (layout.vp > 1 && plan.num_micro_batches % layout.pp != 0) {
    refuse(kThis, fmt::format("vp{}", layout.vp),
           fmt::format("{} micro-batches of a replica are no multiple of pp {}", plan.num_micro_batches, layout.pp));
  }
  if (!plan.is_even() && (layout.vp > 1 || !has_equal_middle(plan.stage_layers))) {
    refuse(kThis, "split", "its configuration has layers of the first and the last stage; all between are equal");
  }
  if (layout.attention == layout::AttentionKernel::kFlash1) {
    refuse(kThis, "attn=flash1", "TransformerEngine runs FlashAttention 2 or later");
  }
  if (layout.cp > 1 && layout.attention != layout::AttentionKernel::kFlash2) {
    refuse(kThis, fmt::format("cp{} attn={}", layout.cp, name_of(layout.attention)),
           "context parallelism needs flash attention");
  }
  if (plan.job.precision == spec::Precision::kFp32) refuse(kThis, "fp32", "mixed precision is bf16, fp16 or fp8");
}

void add_rope_scaling(const spec::Rope& rope, ordered_json& model) {
  if (rope.scaling != spec::RopeScaling::kLlama3) return;
  model["scale_factor"] = rope.factor;
  model["low_freq_factor"] = rope.low_freq_factor;
  model["high_freq_factor"] = rope.high_freq_factor;
  model["old_context_len"] = rope.original_max_position_embeddings;
}

void add_recomputation(const Layout& layout, ordered_json& model) {
  if (layout.checkpointing == Checkpointing::kNone) return;
  if (layout.checkpointing == Checkpointing::kSelective) {
    model["recompute_granularity"] = "selective";
    return;
  }
  model["recompute_granularity"] = "full";
  model["recompute_method"] = layout.full_layers == 0 ? "uniform" : "block";
  model["recompute_num_layers"] = layout.full_layers == 0 ? 1 : layout.full_layers;
}

void add_split(const Plan& plan, ordered_json& model) {
  const std::vector<int64_t>& layers = plan.stage_layers;
  if (plan.is_even()) return;
  const int64_t middle = layers.size() == 2 ? layers.back() : layers[1];
  if (layers.front() != middle) model["num_layers_in_first_pipeline_stage"] = layers.front();
  if (layers.back() != middle) model["num_layers_in_last_pipeline_stage"] = layers.back();
}

ordered_json model_of(const Plan& plan) {
  using layout::AttentionKernel;
  const spec::Model& from = plan.model();
  ordered_json model = {{"num_layers", from.num_layers},
                        {"hidden_size", from.hidden},
                        {"ffn_hidden_size", from.ffn_hidden},
                        {"num_attention_heads", from.num_heads},
                        {"num_query_groups", from.num_kv_heads},
                        {"kv_channels", from.head_size},
                        {"vocab_size", from.vocab},
                        {"seq_length", plan.job.sequence_length},
                        {"rotary_base", static_cast<int64_t>(from.rope.theta)},
                        {"layernorm_epsilon", from.norm_epsilon},
                        {"add_qkv_bias", from.qkv_bias},
                        {"share_embeddings_and_output_weights", from.tied_embeddings},
                        {"attention_backend", plan.layout.attention == AttentionKernel::kFlash2 ? "flash" : "unfused"},
                        {"masked_softmax_fusion", plan.layout.attention != AttentionKernel::kUnfused}};
  add_rope_scaling(from.rope, model);
  add_recomputation(plan.layout, model);
  add_split(plan, model);
  return model;
}

ordered_json precision_of(const Plan& plan) {
  const bool is_fp16 = plan.job.precision == spec::Precision::kFp16;
  ordered_json precision = {{"precision", is_fp16 ? "16-mixed" : "bf16-mixed"}};
  if (plan.job.precision == spec::Precision::kFp8) precision["fp8"] = "hybrid";
  return precision;
}

ordered_json config_of(const Plan& plan) {
  const Layout& layout = plan.layout;
  const Machines machines = machines_of(plan.job);
  const bool is_fp16 = plan.job.precision == spec::Precision::kFp16;
  const bool shards = layout.zero == 1;
  ordered_json strategy = {
      {"tensor_model_parallel_size", layout.tp},
      {"pipeline_model_parallel_size", layout.pp},
      {"virtual_pipeline_model_parallel_size", layout.vp > 1 ? ordered_json(layout.vp) : ordered_json()},
      {"context_parallel_size", layout.cp},
      {"sequence_parallel", layout.sp},
      {"pipeline_dtype", is_fp16 ? "float16" : "bfloat16"}};
  return {{"trainer",
           {{"devices", machines.gpus_per_node}, {"num_nodes", machines.num_nodes}, {"max_steps", plan.options.steps}}},
          {"strategy", strategy},
          {"ddp",
           {{"use_distributed_optimizer", shards},
            {"overlap_grad_reduce", true},
            {"overlap_param_gather", shards},
            {"grad_reduce_in_fp32", true}}},
          {"precision", precision_of(plan)},
          {"data",
           {{"seq_length", plan.job.sequence_length},
            {"micro_batch_size", layout.mb},
            {"global_batch_size", plan.job.global_batch}}},
          {"model", model_of(plan)},
          {"optim",
           {{"optimizer", "adam"},
            {"lr", 3e-4},
            {"weight_decay", 0.1},
            {"adam_beta1", 0.9},
            {"adam_beta2", 0.95},
            {"clip_grad", 1.0},
            {"bf16", !is_fp16},
            {"fp16", is_fp16},
            {"use_distributed_optimizer", shards}}}};
}

}  // namespace

LaunchFiles write_nemo(const Plan& plan) {
  check(plan);
  Script script;
  script.framework = kThis;
  script.environment = {"CUDA_DEVICE_MAX_CONNECTIONS=1"};
  if (plan.layout.attention == layout::AttentionKernel::kUnfused) {
    script.environment.emplace_back("NVTE_MASKED_SOFTMAX_FUSION=0");
  }
  script.program = fmt::format("{} {}", kProgram, kConfig);
  LaunchFiles files;
  files.files.push_back({kConfig,
                         fmt::format("# {}\n# Written by `layline export` for {} {}.\n{}", plan.headline,
                                     title_of(kThis), version_of(kThis), yaml_text(config_of(plan))),
                         false});
  files.files.push_back({kProgram, kPython, false});
  files.files.push_back({kScript, script_text(plan, script), true});
  files.command = start_command(plan, kScript);
  files.notes.emplace_back("mock data are a stand-in: give your data module");
  files.notes.emplace_back("steps and learning rate are stand-ins");
  return files;
}

}  // namespace layline::exporting
