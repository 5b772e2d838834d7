// Megatron-DeepSpeed: DeepSpeed's JSON, and a script with the arguments of pretrain_gpt.py.

#include <fmt/format.h>

#include "layline/export/data_text.h"
#include "layline/export/megatron_arguments.h"
#include "layline/export/script.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;
using nlohmann::ordered_json;

constexpr Framework kThis = Framework::kDeepspeed;
constexpr const char* kScript = "deepspeed.sh";
constexpr const char* kConfig = "deepspeed.json";

void check_schedule(const Layout& layout) {
  if (layout.vp > 1) refuse(kThis, fmt::format("vp{}", layout.vp), "DeepSpeed's pipeline has no virtual stages");
  if (layout.schedule == ScheduleKind::kGpipe) refuse(kThis, "sched=gpipe", "its pipeline runs 1F1B or ZB-H1");
  if (layout.schedule == ScheduleKind::kZeroBubble && layout.pp == 1) {
    refuse(kThis, "pp1 sched=zb", "without a pipeline it runs one micro-batch after the other");
  }
  if (layout.schedule == ScheduleKind::kZeroBubble && layout.sp) {
    refuse(kThis, "sched=zb sp", "its ZB-H1 pipeline runs without sequence parallelism");
  }
}

void check(const Plan& plan) {
  const Layout& layout = plan.layout;
  want_tp_divides_kv_heads(kThis, plan);
  check_schedule(layout);
  if (layout.hsdp > 0) {
    refuse(kThis, fmt::format("hsdp{}", layout.hsdp),
           "ZeRO-3 in groups is MiCS, which Megatron-DeepSpeed does not start");
  }
  if (layout.zero > 1 && layout.pp > 1) {
    refuse(kThis, fmt::format("zero{} pp{}", layout.zero, layout.pp), "its pipeline goes with ZeRO-0 and ZeRO-1 only");
  }
  if (layout.cp > 1) {
    refuse(kThis, fmt::format("cp{}", layout.cp),
           "it spreads a sequence over heads (Ulysses), which is no context parallelism");
  }
  if (!plan.is_even()) {
    refuse(kThis, "split",
           fmt::format("it deals {} layers itself, evenly, and pp {} does not divide them or the split "
                       "is another",
                       plan.model().num_layers, layout.pp));
  }
  if (layout.checkpointing == Checkpointing::kSelective) {
    refuse(kThis, "ckpt=selective", "its pipeline recomputes whole layers or nothing");
  }
  if (layout.full_layers > 0) {
    refuse(kThis, fmt::format("ckpt=full:{}", layout.full_layers), "its pipeline recomputes all layers or none");
  }
  want_fused_norm(kThis, plan, "its norms are fused kernels");
  if (plan.job.precision != spec::Precision::kBf16 && plan.job.precision != spec::Precision::kFp16) {
    refuse(kThis, std::string(spec::name_of(plan.job.precision)), "its files are written for bf16 and fp16");
  }
  if (plan.model().mlp == spec::Mlp::kSquaredRelu) refuse(kThis, plan.model().name, "its norms go with no pipeline");
}

ordered_json config_of(const Plan& plan) {
  const Layout& layout = plan.layout;
  ordered_json json = {{"train_batch_size", plan.job.global_batch},
                       {"train_micro_batch_size_per_gpu", layout.mb},
                       {"gradient_accumulation_steps", plan.num_micro_batches},
                       {"gradient_clipping", 1.0},
                       {"steps_per_print", 1},
                       {"zero_optimization", {{"stage", layout.zero}}}};
  if (plan.job.precision == spec::Precision::kBf16) {
    json["bf16"] = {{"enabled", true}};
    json["data_types"] = {{"grad_accum_dtype", "fp32"}};
  }
  if (plan.job.precision == spec::Precision::kFp16) json["fp16"] = {{"enabled", true}};
  return json;
}

void add_attention(const Layout& layout, Arguments& lines) {
  using layout::AttentionKernel;
  switch (layout.attention) {
    case AttentionKernel::kFlash2:
      return lines.emplace_back("--use-flash-attn-v2"), void();
    case AttentionKernel::kFlash1:
      return lines.emplace_back("--use-flash-attn-v1"), void();
    case AttentionKernel::kFusedSoftmax:
      return;
    case AttentionKernel::kUnfused:
      return lines.emplace_back("--no-masked-softmax-fusion"), void();
  }
}

Arguments arguments_of(const Plan& plan) {
  const Layout& layout = plan.layout;
  Arguments lines = {fmt::format("--deepspeed --deepspeed_config {}", kConfig),
                     fmt::format("--zero-stage {}", layout.zero),
                     fmt::format("--tensor-model-parallel-size {}", layout.tp),
                     fmt::format("--pipeline-model-parallel-size {}", layout.pp)};
  if (layout.pp == 1) lines.emplace_back("--no-pipeline-parallel");
  if (layout.sp) lines.emplace_back("--sequence-parallel");
  if (layout.schedule == ScheduleKind::kZeroBubble) lines.emplace_back("--enable-zbh1-pipeline");
  if (layout.checkpointing == Checkpointing::kFull) {
    lines.emplace_back("--deepspeed-activation-checkpointing --checkpoint-activations --checkpoint-num-layers 1");
  }
  add_attention(layout, lines);
  if (plan.job.precision == spec::Precision::kBf16) lines.emplace_back("--bf16");
  if (plan.job.precision == spec::Precision::kFp16) lines.emplace_back("--fp16");
  for (const Arguments& more : {model_arguments(kThis, plan), batch_arguments(plan)}) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  lines.emplace_back("--data-path \"$DATA_PATH\" --tokenizer-type NullTokenizer");
  lines.push_back(fmt::format("--vocab-size {} --eval-iters 0 --log-interval 1", plan.model().vocab - 1));
  return lines;
}

}  // namespace

LaunchFiles write_deepspeed(const Plan& plan) {
  check(plan);
  Script script;
  script.framework = kThis;
  script.environment = {"CUDA_DEVICE_MAX_CONNECTIONS=1"};
  script.checkout = "MEGATRON_DEEPSPEED_PATH";
  script.program = "\"$MEGATRON_DEEPSPEED_PATH/pretrain_gpt.py\" \"${ARGS[@]}\" \"$@\"";
  script.arguments = arguments_of(plan);
  LaunchFiles files;
  files.files.push_back({kConfig, config_of(plan).dump(2) + "\n", false});
  files.files.push_back({kScript, script_text(plan, script), true});
  files.command = "DATA_PATH=… " + start_command(plan, kScript);
  files.notes.emplace_back("set DATA_PATH to your data and give their tokenizer");
  files.notes.emplace_back("steps and learning rate are stand-ins");
  return files;
}

}  // namespace layline::exporting
