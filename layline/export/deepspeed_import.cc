// DeepSpeed's JSON and the script that starts Megatron-DeepSpeed with it: either may be given, and names the other.

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/export/command_settings.h"
#include "layline/export/documents.h"
#include "layline/layout/layout_text.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;

constexpr int64_t kMaxAxis = layout::kMaxAxis;

bool is_json(std::string_view text) { return text[text.find_first_not_of(" \t\r\n")] == '{'; }

// A count; nothing where the file leaves it to the program that reads it, as Hugging Face's Trainer has it.
std::optional<int64_t> count_or_auto(Settings& json, const std::string& key, int64_t upper) {
  return json.is_auto(key) ? std::nullopt : json.whole(key, 1, upper);
}

void note_offloading(Settings& json, Draft& draft) {
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    const std::string device = json.text_or(fmt::format("zero_optimization.{}.device", part), "none");
    if (device == "none") continue;
    draft.notes.push_back(fmt::format("{} to {}: priced without, all stays on the GPUs", part, device));
  }
}

// Batch, sharding and precision. A number that the command line gives too must be the same.
void read_json(Settings& json, bool has_script, Draft& draft) {
  Layout& layout = draft.layout;
  const auto total = count_or_auto(json, "train_batch_size", kMaxCount);
  const auto micro = count_or_auto(json, "train_micro_batch_size_per_gpu", kMaxAxis);
  const auto accumulation = count_or_auto(json, "gradient_accumulation_steps", kMaxAxis);
  if (!has_script && json.is_auto("train_micro_batch_size_per_gpu")) {
    json.fail("train_micro_batch_size_per_gpu",
              "is \"auto\", which only the program that reads it knows: write a number");
  }
  if (micro) layout.mb = *micro;
  if (total) draft.global_batch = *total;
  if (total && micro && accumulation) {
    const int64_t each = *micro * *accumulation;
    if (*total % each != 0) {
      json.fail("train_batch_size",
                fmt::format("{} is no multiple of micro-batch {} x accumulation {}", *total, *micro, *accumulation));
    }
    draft.dp = *total / each;
  }
  layout.zero = static_cast<int>(json.whole_or("zero_optimization.stage", layout.zero, 0, 3));
  const std::string groups =
      json.first_of({"zero_optimization.mics_shard_size", "zero_optimization.mics_hierarchical"});
  layout.hsdp = std::max<int64_t>(0, json.whole_or(groups, 0, -1, kMaxAxis));
  for (const char* key : {"bf16.enabled", "fp16.enabled"}) {
    if (has_script || !json.is_auto(key)) continue;
    json.fail(key, "is \"auto\", which only the program that reads it knows: write true or false");
  }
  if (!json.is_auto("bf16.enabled") && json.is_on("bf16.enabled")) draft.precision = spec::Precision::kBf16;
  if (!json.is_auto("fp16.enabled") && json.is_on("fp16.enabled")) draft.precision = spec::Precision::kFp16;
  const int64_t tp = json.whole_or("tensor_parallel.autotp_size", 1, 0, kMaxAxis);
  if (tp > 1) layout.tp = tp;
  if (json.has("pipeline.stages")) layout.pp = json.whole_or("pipeline.stages", 1, 1, kMaxAxis);
}

layout::AttentionKernel attention_of(Settings& options) {
  using layout::AttentionKernel;
  const bool is_plain = options.is_given("no-masked-softmax-fusion");
  const bool is_flash2 = options.is_given("use-flash-attn-v2") || options.is_given("use-flash-attn-triton") ||
                         options.is_given("use-flash-attn-builder");
  if (is_flash2) return AttentionKernel::kFlash2;
  if (options.is_given("use-flash-attn-v1") || options.is_given("use-flash-attn")) return AttentionKernel::kFlash1;
  return is_plain ? AttentionKernel::kUnfused : AttentionKernel::kFusedSoftmax;
}

void read_options(Settings& options, Draft& draft) {
  Layout& layout = draft.layout;
  layout.tp = options.whole_or("tensor-model-parallel-size", 1, 1, kMaxAxis);
  layout.pp = options.whole_or("pipeline-model-parallel-size", 1, 1, kMaxAxis);
  if (options.whole_or("ds-sequence-parallel-size", 1, 1, kMaxAxis) > 1) {
    options.fail("--ds-sequence-parallel-size", "a sequence spread over heads (Ulysses) cannot be priced");
  }
  if (options.whole_or("moe-expert-parallel-size", 1, 1, kMaxAxis) > 1) {
    options.fail("--moe-expert-parallel-size", "mixtures of experts cannot be priced");
  }
  layout.sp = options.is_given("sequence-parallel");
  if (options.is_given("enable-zbh1-pipeline")) layout.schedule = ScheduleKind::kZeroBubble;
  layout.zero = static_cast<int>(options.whole_or("zero-stage", 0, 0, 3));
  layout.attention = attention_of(options);
  // Each alone does nothing to DeepSpeed's pipeline; scripts give both or the newer names.
  const bool recomputes =
      options.is_given("checkpoint-activations") || options.text_or("recompute-granularity", "none") == "full";
  if (recomputes) layout.checkpointing = Checkpointing::kFull;
  layout.mb = options.whole_or("micro-batch-size", 1, 1, kMaxAxis);
  draft.global_batch = options.whole_or("global-batch-size", 0, 1, kMaxCount);
  draft.sequence_length = options.whole_or("seq-length", 0, 1, kMaxCount);
  const bool is_bf16 = options.is_given("bf16"), is_fp16 = options.is_given("fp16");
  draft.precision = is_bf16 ? spec::Precision::kBf16 : is_fp16 ? spec::Precision::kFp16 : spec::Precision::kFp32;
  options.pass_over({"deepspeed", "no-pipeline-parallel", "deepspeed-activation-checkpointing", "checkpoint-num-layers",
                     "recompute-method", "recompute-num-layers"});
}

void check_same(const Settings& json, const char* what, int64_t script, int64_t file) {
  if (script == 0 || file == 0 || script == file) return;
  throw base::InputError(json.where(), fmt::format("{} is {}, but the script says {}", what, file, script));
}

// The JSON that the script writes itself, or a file that it names.
std::string json_text(const ShellScript& script, const std::string& path, const ImportOptions& given) {
  const auto written = script.documents.find(path);
  if (written != script.documents.end()) return written->second;
  return given.open ? given.open(path) : "";
}

// To what the script says, where there is one.
void add_json(std::string_view text, const std::string& where, bool has_script, Draft& draft) {
  Settings json = json_settings(text, where);
  const int64_t micro = draft.layout.mb, global = draft.global_batch;
  const bool has_micro = json.has("train_micro_batch_size_per_gpu");
  read_json(json, has_script, draft);
  note_offloading(json, draft);
  if (has_script && has_micro) check_same(json, "train_micro_batch_size_per_gpu", micro, draft.layout.mb);
  check_same(json, "train_batch_size", global, draft.global_batch);
  const std::vector<std::string> ignored = json.ignored();
  draft.ignored.insert(draft.ignored.end(), ignored.begin(), ignored.end());
}

void even_stages(Draft& draft) {
  const Layout& layout = draft.layout;
  if (!draft.model || draft.model->num_layers % layout.pp != 0) return;
  draft.stage_layers.assign(static_cast<size_t>(layout.pp), draft.model->num_layers / layout.pp);
}

Draft read_script(std::string_view text, const ImportOptions& given) {
  const ShellScript script = read_shell(text, given.where);
  Settings options = command_settings(script, given.where);
  Draft draft;
  draft.notes = script.notes;
  draft.num_gpus = world_size(options, script);
  read_model_options(Framework::kDeepspeed, options, draft);
  read_options(options, draft);
  const std::optional<std::string> path = options.text("deepspeed-config");
  draft.ignored = options.ignored();
  if (!path) return draft;
  const std::string json = json_text(script, *path, given);
  if (json.empty()) {
    draft.notes.push_back(fmt::format("{} is not there: ZeRO stage and batch are the script's", *path));
  } else {
    add_json(json, *path, /*has_script=*/true, draft);
  }
  even_stages(draft);
  return draft;
}

}  // namespace

Draft read_deepspeed(std::string_view text, const ImportOptions& given) {
  if (!is_json(text)) return read_script(text, given);
  Draft draft;
  draft.layout.zero = 0;
  draft.precision = spec::Precision::kFp32;
  add_json(text, given.where, /*has_script=*/false, draft);
  return draft;
}

}  // namespace layline::exporting
