// Megatron-LM: a script with the arguments of pretrain_gpt.py.

#include <fmt/format.h>

#include "layline/export/megatron_arguments.h"
#include "layline/export/script.h"
#include "layline/export/stage_pattern.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;

constexpr Framework kThis = Framework::kMegatron;
constexpr const char* kScript = "megatron.sh";

void check(const Plan& plan) {
  const Layout& layout = plan.layout;
  want_tp_divides_kv_heads(kThis, plan);
  want_zero_up_to(
      kThis, plan, 1,
      "its distributed optimizer is ZeRO-1; Megatron-FSDP shards more, but has other kernels and no shipped "
      "engine");
  want_fused_norm(kThis, plan, "TransformerEngine's norms are always fused");
  if (layout.schedule == ScheduleKind::kGpipe || layout.schedule == ScheduleKind::kZeroBubble) {
    refuse(kThis, fmt::format("sched={}", name_of(layout.schedule)), "it runs 1F1B and interleaved 1F1B only");
  }
  if (layout.vp > 1 && plan.num_micro_batches % layout.pp != 0) {
    refuse(kThis, fmt::format("vp{}", layout.vp),
           fmt::format("{} micro-batches of a replica are no multiple of pp {}", plan.num_micro_batches, layout.pp));
  }
  if (layout.attention == layout::AttentionKernel::kFlash1) {
    refuse(kThis, "attn=flash1", "TransformerEngine runs FlashAttention 2 or later");
  }
  if (layout.cp > 1 && layout.attention != layout::AttentionKernel::kFlash2) {
    refuse(kThis, fmt::format("cp{} attn={}", layout.cp, name_of(layout.attention)),
           "context parallelism needs flash attention");
  }
}

void add_axes(const Plan& plan, Arguments& lines) {
  const Layout& layout = plan.layout;
  lines.push_back(fmt::format("--tensor-model-parallel-size {}", layout.tp));
  lines.push_back(fmt::format("--pipeline-model-parallel-size {}", layout.pp));
  if (layout.cp > 1) lines.push_back(fmt::format("--context-parallel-size {}", layout.cp));
  if (layout.sp) lines.emplace_back("--sequence-parallel");
  if (!plan.is_even()) {
    lines.push_back(fmt::format("--pipeline-model-parallel-layout {}", shell_quoted(stage_pattern(plan.stage_layers))));
  } else if (layout.vp > 1) {
    lines.push_back(fmt::format("--num-virtual-stages-per-pipeline-rank {}", layout.vp));
  }
  lines.emplace_back(layout.zero == 1 ? "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
                                      : "--overlap-grad-reduce");
}

void add_recomputation(const Layout& layout, Arguments& lines) {
  switch (layout.checkpointing) {
    case Checkpointing::kNone:
      return;
    case Checkpointing::kSelective:
      return lines.emplace_back("--recompute-granularity selective"), void();
    case Checkpointing::kFull:
      break;
  }
  lines.push_back(layout.full_layers == 0
                      ? "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
                      : fmt::format("--recompute-granularity full --recompute-method block --recompute-num-layers {}",
                                    layout.full_layers));
}

void add_kernels(const Plan& plan, Arguments& lines) {
  using layout::AttentionKernel;
  lines.emplace_back("--transformer-impl transformer_engine");
  lines.push_back(
      fmt::format("--attention-backend {}", plan.layout.attention == AttentionKernel::kFlash2 ? "flash" : "unfused"));
  if (plan.layout.attention == AttentionKernel::kUnfused) lines.emplace_back("--no-masked-softmax-fusion");
  switch (plan.job.precision) {
    case spec::Precision::kBf16:
      return lines.emplace_back("--bf16"), void();
    case spec::Precision::kFp16:
      return lines.emplace_back("--fp16"), void();
    case spec::Precision::kFp8:
      return lines.emplace_back("--bf16 --fp8-format hybrid"), void();
    case spec::Precision::kFp32:
      return;
  }
}

std::vector<std::string> environment(const Layout& layout) {
  std::vector<std::string> variables = {"CUDA_DEVICE_MAX_CONNECTIONS=1"};
  if (layout.attention == layout::AttentionKernel::kUnfused) variables.emplace_back("NVTE_MASKED_SOFTMAX_FUSION=0");
  return variables;
}

}  // namespace

LaunchFiles write_megatron(const Plan& plan) {
  check(plan);
  Script script;
  script.framework = kThis;
  script.environment = environment(plan.layout);
  script.checkout = "MEGATRON_PATH";
  script.program = "\"$MEGATRON_PATH/pretrain_gpt.py\" \"${ARGS[@]}\" \"$@\"";
  add_axes(plan, script.arguments);
  add_recomputation(plan.layout, script.arguments);
  add_kernels(plan, script.arguments);
  for (const Arguments& more : {model_arguments(kThis, plan), batch_arguments(plan)}) {
    script.arguments.insert(script.arguments.end(), more.begin(), more.end());
  }
  // The null tokenizer adds one entry, for the end of a document.
  script.arguments.push_back(
      fmt::format("--mock-data --tokenizer-type NullTokenizer --vocab-size {}", plan.model().vocab - 1));
  script.arguments.emplace_back("--eval-iters 0 --log-interval 1 --log-throughput");
  LaunchFiles files;
  files.files.push_back({kScript, script_text(plan, script), true});
  files.command = start_command(plan, kScript);
  files.notes.emplace_back("mock data and the null tokenizer are stand-ins: give --data-path and your tokenizer");
  files.notes.emplace_back("steps and learning rate are stand-ins");
  if (plan.layout.sp) {
    files.notes.emplace_back(
        "--tp-comm-overlap hides tensor-parallel traffic where TransformerEngine has user buffers");
  }
  return files;
}

}  // namespace layline::exporting
