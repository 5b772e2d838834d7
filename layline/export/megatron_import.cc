// Megatron-LM's command line, out of a script.

#include <fmt/format.h>

#include <algorithm>

#include "layline/export/command_settings.h"
#include "layline/export/stage_pattern.h"
#include "layline/layout/layout_text.h"
#include "layline/layout/stage_split.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;

constexpr int64_t kMaxAxis = layout::kMaxAxis;

int zero_of(Settings& options) {
  const bool is_fsdp = options.is_given("use-megatron-fsdp") || options.is_given("use-custom-fsdp");
  if (options.is_given("use-torch-fsdp2")) return 3;
  const bool is_zero1 = options.is_given("use-distributed-optimizer");
  if (!is_fsdp) return is_zero1 ? 1 : 0;
  const std::string strategy = options.text_or("data-parallel-sharding-strategy", "no_shard");
  if (strategy == "optim_grads_params") return 3;
  if (strategy == "optim_grads") return 2;
  if (strategy != "optim" && strategy != "no_shard") {
    options.fail("--data-parallel-sharding-strategy",
                 fmt::format("found \"{}\", want no_shard, optim, optim_grads or optim_grads_params", strategy));
  }
  return strategy == "optim" ? 1 : 0;
}

void read_recomputation(Settings& options, Draft& draft) {
  Layout& layout = draft.layout;
  const bool is_short = options.is_given("recompute-activations");
  const std::string granularity = options.text_or("recompute-granularity", is_short ? "selective" : "none");
  const std::string method = options.one_of("recompute-method", "uniform", {"uniform", "block"});
  const int64_t layers = options.whole_or("recompute-num-layers", 1, 1, kMaxAxis);
  if (granularity == "selective") {
    layout.checkpointing = Checkpointing::kSelective;
    const std::string modules = options.text_or("recompute-modules", "core_attn");
    if (modules != "core_attn") {
      draft.notes.push_back(fmt::format("recompute-modules {}: priced as selective, of core attention", modules));
    }
  } else if (granularity == "full" || options.is_given("checkpoint-activations")) {
    layout.checkpointing = Checkpointing::kFull;
    if (method == "block") layout.full_layers = layers;
    if (method != "block" && layers > 1) {
      draft.notes.push_back(fmt::format("recompute-num-layers {}: priced as every layer on its own", layers));
    }
  } else if (granularity != "none") {
    options.fail("--recompute-granularity", fmt::format("found \"{}\", want selective or full", granularity));
  }
}

layout::AttentionKernel attention_of(Settings& options, const ShellScript& script) {
  using layout::AttentionKernel;
  const std::string backend =
      options.one_of("attention-backend", "auto", {"auto", "flash", "fused", "unfused", "local"});
  const bool is_local = options.text_or("transformer-impl", "transformer_engine") == "local";
  const auto is_off = [&](const char* name) {
    const auto found = script.variables.find(name);
    return found != script.variables.end() && found->second == "0";
  };
  const bool is_plain = options.is_given("no-masked-softmax-fusion") || is_off("NVTE_MASKED_SOFTMAX_FUSION");
  const bool wants_flash = options.is_given("use-flash-attn") || backend == "flash" || backend == "fused";
  const bool is_unfused = backend == "unfused" || backend == "local" || is_local ||
                          (is_off("NVTE_FLASH_ATTN") && is_off("NVTE_FUSED_ATTN"));
  if (wants_flash || !is_unfused) return AttentionKernel::kFlash2;
  return is_plain ? AttentionKernel::kUnfused : AttentionKernel::kFusedSoftmax;
}

spec::Precision precision_of(Settings& options) {
  const bool is_bf16 = options.is_given("bf16"), is_fp16 = options.is_given("fp16");
  if (options.is_given("fp8-format") || options.is_given("fp8-hybrid")) return spec::Precision::kFp8;
  if (is_bf16 && is_fp16) options.fail("--bf16", "is there, and --fp16 too");
  return is_bf16 ? spec::Precision::kBf16 : is_fp16 ? spec::Precision::kFp16 : spec::Precision::kFp32;
}

// Even, as it is without options, but for an embedding or a head that counts as a layer.
std::vector<int64_t> even_layers(Settings& options, int64_t num_layers, int64_t num_stages) {
  const int64_t embedding = options.is_given("account-for-embedding-in-pipeline-split") ? 1 : 0;
  const int64_t head = options.is_given("account-for-loss-in-pipeline-split") ? 1 : 0;
  const int64_t units = num_layers + embedding + head;
  if (units % num_stages != 0) {
    options.fail("--num-layers", fmt::format("{} layers are no multiple of the {} stages", num_layers, num_stages));
  }
  std::vector<int64_t> layers(static_cast<size_t>(num_stages), units / num_stages);
  layers.front() -= embedding;
  layers.back() -= head;
  if (layers.front() < 1 || layers.back() < 1) {
    options.fail("--num-layers", fmt::format("{} layers on {} stages leave none beside the embedding or the loss",
                                             num_layers, num_stages));
  }
  return layers;
}

void read_stages(Settings& options, Draft& draft) {
  Layout& layout = draft.layout;
  const std::optional<std::string> pattern = options.text("pipeline-model-parallel-layout");
  const auto first = options.whole("decoder-first-pipeline-num-layers", 1, kMaxAxis);
  const auto last = options.whole("decoder-last-pipeline-num-layers", 1, kMaxAxis);
  const auto each = options.whole("num-layers-per-virtual-pipeline-stage", 1, kMaxAxis);
  layout.vp = options.whole_or("num-virtual-stages-per-pipeline-rank", 1, 1, kMaxAxis);
  const int64_t num_layers = draft.model ? draft.model->num_layers : 0;
  if (pattern) {
    draft.stage_layers = parse_stage_pattern(*pattern, options.where() + ": --pipeline-model-parallel-layout");
    const auto num_stages = static_cast<int64_t>(draft.stage_layers.size());
    if (num_stages % layout.pp != 0) {
      options.fail("--pipeline-model-parallel-layout",
                   fmt::format("{} stages are no multiple of pp {}", num_stages, layout.pp));
    }
    layout.vp = num_stages / layout.pp;
  } else if (first || last) {
    if (num_layers == 0) options.fail("--num-layers", "is missing");
    const auto layers = layout::split_with_ends(num_layers, layout.pp, first, last);
    if (!layers) options.fail("--num-layers", "what the first and last stage leave is no multiple of the others");
    draft.stage_layers = *layers;
  } else if (num_layers > 0) {
    if (each) {
      if (num_layers % (layout.pp * *each) != 0) {
        options.fail("--num-layers-per-virtual-pipeline-stage",
                     fmt::format("{} layers are no multiple of pp {} x {}", num_layers, layout.pp, *each));
      }
      layout.vp = num_layers / (layout.pp * *each);
    }
    draft.stage_layers = even_layers(options, num_layers, layout.num_virtual_stages());
  }
  layout.schedule = layout.vp > 1 ? layout::ScheduleKind::kInterleaved : layout::ScheduleKind::kOneFOneB;
}

}  // namespace

Draft read_megatron(std::string_view text, const ImportOptions& given) {
  const ShellScript script = read_shell(text, given.where);
  Settings options = command_settings(script, given.where);
  Draft draft;
  draft.notes = script.notes;
  Layout& layout = draft.layout;
  draft.num_gpus = world_size(options, script);
  read_model_options(Framework::kMegatron, options, draft);
  layout.tp = options.whole_or("tensor-model-parallel-size", 1, 1, kMaxAxis);
  layout.pp = options.whole_or("pipeline-model-parallel-size", 1, 1, kMaxAxis);
  layout.cp = options.whole_or("context-parallel-size", 1, 1, kMaxAxis);
  layout.mb = options.whole_or("micro-batch-size", 1, 1, kMaxAxis);
  layout.sp = options.is_given("sequence-parallel");
  layout.zero = zero_of(options);
  layout.attention = attention_of(options, script);
  read_recomputation(options, draft);
  read_stages(options, draft);
  draft.precision = precision_of(options);
  draft.global_batch = options.whole_or("global-batch-size", 0, 1, kMaxCount);
  draft.sequence_length = options.whole_or("seq-length", 0, 1, kMaxCount);
  if (options.is_given("optimizer-cpu-offload")) {
    draft.notes.emplace_back("optimizer-cpu-offload: priced without, all stays on the GPUs");
  }
  if (options.is_given("rampup-batch-size")) draft.notes.emplace_back("rampup-batch-size: the full batch is priced");
  if (options.whole_or("expert-model-parallel-size", 1, 1, kMaxAxis) > 1) {
    options.fail("--expert-model-parallel-size", "mixtures of experts cannot be priced");
  }
  draft.ignored = options.ignored();
  return draft;
}

}  // namespace layline::exporting
