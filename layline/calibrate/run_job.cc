#include "layline/calibrate/run_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/base/number.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::calibrate {
namespace {

constexpr int64_t kMaxNode = 100'000;
constexpr double kMaxMemory = 1e15;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Attention kernels as run records spell them.
spec::AttentionKernel attention_of(const runs::RunRecord& record, const spec::Engine& engine) {
  const std::string& kernel = record.attention_kernel;
  if (kernel.empty()) return engine.default_attention;
  if (contains(kernel, "flash_attention2") || contains(kernel, "flash_attention_triton")) {
    return spec::AttentionKernel::kFlash2;
  }
  if (contains(kernel, "flash_attention1")) return spec::AttentionKernel::kFlash1;
  if (contains(kernel, "TransformerEngine") || contains(kernel, "TE") || contains(kernel, "cuDNN")) {
    return spec::AttentionKernel::kFlash2;
  }
  if (contains(kernel, "fused_softmax") || contains(kernel, "fused scaled-masked-softmax") ||
      contains(kernel, "fused softmax")) {
    return spec::AttentionKernel::kFusedSoftmax;
  }
  if (contains(kernel, "unfused")) return spec::AttentionKernel::kUnfused;
  return engine.default_attention;
}

spec::Precision precision_of(const std::string& text, const spec::Gpu& gpu) {
  if (contains(text, "fp8")) return spec::Precision::kFp8;
  if (contains(text, "bf16") && contains(text, "fp16")) return spec::Precision::kFp16;  // either, not said which
  if (contains(text, "bf16") && gpu.bf16_flops_per_second > 0) return spec::Precision::kBf16;
  if (contains(text, "fp32")) return spec::Precision::kFp32;
  return gpu.bf16_flops_per_second > 0 && text.empty() ? spec::Precision::kBf16 : spec::Precision::kFp16;
}

spec::Checkpointing checkpointing_of(const std::string& recompute) {
  if (recompute == "full") return spec::Checkpointing::kFull;
  if (recompute == "selective") return spec::Checkpointing::kSelective;
  return spec::Checkpointing::kNone;
}

std::string missing_field(const runs::RunRecord& r) {
  const std::pair<const char*, bool> needed[] = {
      {"layers", r.layers.has_value()},
      {"hidden", r.hidden.has_value()},
      {"heads", r.heads.has_value()},
      {"vocab", r.vocab.has_value()},
      {"seq_len", r.seq_len.has_value()},
      {"global_batch_sequences", r.global_batch_sequences.has_value()},
      {"micro_batch_size", r.micro_batch_size.has_value()},
      {"tp", r.tp.has_value()},
      {"pp", r.pp.has_value()},
      {"gpus_total", runs::num_gpus(r).has_value()},
  };
  for (const auto& [name, present] : needed) {
    if (!present) return fmt::format("no {} in the record", name);
  }
  return "";
}

spec::Model model_of(const runs::RunRecord& r) {
  spec::Model model;
  model.name = r.model;
  model.title = r.model;
  model.num_layers = *r.layers;
  model.hidden = *r.hidden;
  model.num_heads = *r.heads;
  model.num_kv_heads = r.kv_heads.value_or(*r.heads);
  model.head_size = *r.hidden / std::max<int64_t>(1, *r.heads);
  model.mlp =
      r.mlp == "swiglu" ? spec::Mlp::kSwiglu : (r.mlp == "squared-relu" ? spec::Mlp::kSquaredRelu : spec::Mlp::kGelu);
  model.ffn_hidden = r.ffn_hidden.value_or(4 * *r.hidden);
  model.vocab = *r.vocab;
  const bool llama = model.mlp == spec::Mlp::kSwiglu;
  model.norm = llama ? spec::Norm::kRmsNorm : spec::Norm::kLayerNorm;
  model.position = llama ? spec::Position::kRope : spec::Position::kLearned;
  model.max_sequence_length = llama ? 0 : *r.seq_len;
  model.qkv_bias = model.linear_bias = model.mlp == spec::Mlp::kGelu;
  model.tied_embeddings = r.tie_embeddings.value_or(false);
  return model;
}

layout::Layout layout_of(const runs::RunRecord& r, const spec::Engine& engine, int64_t gpus) {
  layout::Layout layout;
  layout.tp = *r.tp;
  layout.pp = *r.pp;
  layout.cp = r.cp.value_or(1);
  layout.ep = r.ep.value_or(1);
  layout.vp = r.vpp.value_or(1);
  layout.mb = *r.micro_batch_size;
  layout.dp = r.dp.value_or(std::max<int64_t>(1, gpus / layout.tp / layout.pp / layout.cp));
  layout.sp = layout.tp > 1 && (r.sp.value_or(false) || engine.sequence_parallel_always);
  layout.zero = static_cast<int>(r.zero_stage.value_or(1));
  layout.checkpointing = checkpointing_of(r.recompute);
  layout.schedule = layout.vp > 1 ? spec::ScheduleKind::kInterleaved : spec::ScheduleKind::kOneFOneB;
  layout.split = engine.default_split;
  layout.attention = attention_of(r, engine);
  layout.norm = r.norm_kernel.empty()
                    ? engine.default_norm
                    : (r.norm_kernel == "fused" ? spec::NormKernel::kFused : spec::NormKernel::kUnfused);
  return layout;
}

std::string_view mlp_name(spec::Mlp mlp) {
  switch (mlp) {
    case spec::Mlp::kSwiglu:
      return "swiglu";
    case spec::Mlp::kSquaredRelu:
      return "squared-relu";
    default:
      return "gelu";
  }
}

// As attention_of reads them.
std::string_view attention_name(layout::AttentionKernel kernel) {
  switch (kernel) {
    case layout::AttentionKernel::kFlash2:
      return "flash_attention2";
    case layout::AttentionKernel::kFlash1:
      return "flash_attention1";
    case layout::AttentionKernel::kFusedSoftmax:
      return "fused_softmax";
    case layout::AttentionKernel::kUnfused:
      break;
  }
  return "unfused";
}

void put_job(const spec::Job& job, runs::RunRecord& record) {
  record.hardware = job.cluster.name;
  record.gpus_total = job.num_gpus;
  record.gpus_per_node = std::min<int64_t>(job.num_gpus, job.cluster.gpus_per_node);
  record.model = job.model.name;
  record.layers = job.model.num_layers;
  record.hidden = job.model.hidden;
  record.heads = job.model.num_heads;
  record.kv_heads = job.model.num_kv_heads;
  record.ffn_hidden = job.model.ffn_hidden;
  record.vocab = job.model.vocab;
  record.seq_len = job.sequence_length;
  record.global_batch_sequences = job.global_batch;
  record.precision = spec::name_of(job.precision);
  record.engine = job.engine.name;
  record.mlp = mlp_name(job.model.mlp);
  record.tie_embeddings = job.model.tied_embeddings;
}

void put_layout(const layout::Layout& layout, runs::RunRecord& record) {
  record.micro_batch_size = layout.mb;
  record.tp = layout.tp;
  record.sp = layout.sp;
  record.pp = layout.pp;
  record.vpp = layout.vp;
  record.cp = layout.cp;
  record.ep = layout.ep;
  record.dp = layout.dp;
  record.zero_stage = layout.zero;
  record.recompute = spec::name_of(layout.checkpointing);
  record.attention_kernel = attention_name(layout.attention);
  record.norm_kernel = spec::name_of(layout.norm);
}

}  // namespace

RunJobOrReason job_of(const runs::RunRecord& record, const std::string& engine_override, const spec::Cluster* cluster) {
  if (std::string missing = missing_field(record); !missing.empty()) return {std::nullopt, std::move(missing)};
  try {
    RunJob run;
    run.engine_name = engine_override.empty() ? record.engine : engine_override;
    if (run.engine_name.empty()) return {std::nullopt, "no engine in the record"};
    run.job.engine = spec::get_engine(run.engine_name);
    const bool is_on_cluster = cluster != nullptr && cluster->name == record.hardware;
    run.job.cluster = is_on_cluster ? *cluster : spec::cluster_for_hardware(record.hardware, record.interconnect);
    if (record.gpus_per_node) {
      run.job.cluster.gpus_per_node = static_cast<int>(std::min(*record.gpus_per_node, kMaxNode));
    }
    run.job.model = model_of(record);
    spec::check_model(run.job.model, record.model);
    run.job.num_gpus = *runs::num_gpus(record);
    run.job.global_batch = *record.global_batch_sequences;
    run.job.sequence_length = *record.seq_len;
    run.job.precision = precision_of(record.precision, run.job.cluster.gpu);
    if (const std::string limit = runs::note(record, "memory_limit_bytes"); !limit.empty()) {
      run.job.cluster.gpu.memory_bytes = base::parse_number(limit, 1, kMaxMemory, "memory_limit_bytes");
    }
    spec::check_job(run.job);
    const std::string text = runs::note(record, "layout");
    run.layout = text.empty() ? layout_of(record, run.job.engine, run.job.num_gpus)
                              : layout::parse_layout(text, {.num_gpus = run.job.num_gpus,
                                                            .defaults = layout::text_defaults(run.job.engine)});
    return {std::move(run), ""};
  } catch (const base::InputError& error) {
    return {std::nullopt, error.what()};
  }
}

runs::RunRecord record_of(const spec::Job& job, const layout::Layout& layout) {
  runs::RunRecord record;
  put_job(job, record);
  put_layout(layout, record);
  return record;
}

}  // namespace layline::calibrate
