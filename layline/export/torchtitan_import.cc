// torchtitan's TOML.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "layline/export/documents.h"
#include "layline/export/readers.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::exporting {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::ScheduleKind;

constexpr int64_t kMaxAxis = layout::kMaxAxis;

// The flavors that torchtitan ships, by model.name and model.flavor.
struct Flavor {
  std::string_view name, flavor, model;
};
constexpr std::array<Flavor, 3> kFlavors = {
    {{"llama3", "8B", "llama-3.1-8b"}, {"llama3", "70B", "llama-3.1-70b"}, {"llama3", "405B", "llama-3.1-405b"}}};

// Sizes are in torchtitan's code, not in the file: a flavor it ships, or one that is called like a model shipped here.
void read_model(Settings& toml, const ImportOptions& options, Draft& draft) {
  const std::string name = toml.text_or("model.name", "llama3"), flavor = toml.text_or("model.flavor", "");
  for (const Flavor& known : kFlavors) {
    if (known.name == name && known.flavor == flavor) draft.model = spec::get_model(std::string(known.model));
  }
  for (const spec::ShippedSpec& shipped : spec::shipped_specs()) {
    if (shipped.kind == spec::SpecKind::kModel && shipped.name == flavor) draft.model = spec::get_model(flavor);
  }
  if (!draft.model && options.model.empty()) {
    toml.fail("model.flavor", fmt::format("\"{}\": its sizes are in torchtitan's code, give --model", flavor));
  }
}

void read_sharding(Settings& toml, const ImportOptions& options, Draft& draft) {
  Layout& layout = draft.layout;
  const int64_t replicate = toml.whole_or("parallelism.data_parallel_replicate_degree", 1, 1, kMaxAxis);
  int64_t shard = toml.whole_or("parallelism.data_parallel_shard_degree", -1, -1, kMaxAxis);
  if (shard == 0) toml.fail("parallelism.data_parallel_shard_degree", "found 0, want -1 or at least 1");
  const int64_t others = replicate * layout.tp * layout.pp * layout.cp;  // at most 10^24 is checked below
  if (shard < 0) {
    if (options.num_gpus == 0) {
      toml.fail("parallelism.data_parallel_shard_degree", "is what is left of the GPUs: give --gpus");
    }
    if (options.num_gpus % others != 0) {
      toml.fail("parallelism",
                fmt::format("world size {} is not divisible by the degrees, {}", options.num_gpus, others));
    }
    shard = options.num_gpus / others;
  }
  draft.dp = replicate * shard;
  const std::string reshard =
      toml.one_of("parallelism.fsdp_reshard_after_forward", "default", {"default", "always", "never"});
  const bool shards_over_cp = layout.cp > 1;
  const bool is_fsdp = shard > 1 || shards_over_cp || (replicate == 1 && reshard != "default");
  layout.zero = !is_fsdp ? 0 : reshard == "never" || (reshard == "default" && layout.pp > 1) ? 2 : 3;
  if (is_fsdp && replicate > 1) {
    if (layout.zero == 2) {
      draft.notes.emplace_back("sharding in groups without resharding after the forward pass: priced with it");
    }
    layout.zero = 3;
    layout.hsdp = shard;
  }
}

int64_t axis(Settings& toml, const std::string& key) { return toml.whole_or("parallelism." + key, 1, 1, kMaxAxis); }

ScheduleKind schedule_of(Settings& toml) {
  const std::string name = toml.text_or("parallelism.pipeline_parallel_schedule", "1F1B");
  if (name == "1F1B") return ScheduleKind::kOneFOneB;
  if (name == "GPipe") return ScheduleKind::kGpipe;
  if (name == "Interleaved1F1B") return ScheduleKind::kInterleaved;
  toml.fail("parallelism.pipeline_parallel_schedule",
            fmt::format("\"{}\" cannot be priced; 1F1B, GPipe and Interleaved1F1B can", name));
}

// torchtitan deals the layers, with the ends counted as so many, and the remainder to the first stages.
std::vector<int64_t> dealt(int64_t num_layers, int64_t num_stages, int64_t first_less, int64_t last_less) {
  const int64_t units = num_layers + first_less + last_less;
  std::vector<int64_t> layers(static_cast<size_t>(num_stages), units / num_stages);
  std::fill_n(layers.begin(), units % num_stages, units / num_stages + 1);
  layers.front() -= first_less;
  layers.back() -= last_less;
  return layers;
}

int64_t layers_in(const Value& part) {
  return std::count_if(part.items.begin(), part.items.end(),
                       [](const Value& name) { return name.text.starts_with("layers."); });
}

void read_stages(Settings& toml, const ImportOptions& options, Draft& draft) {
  Layout& layout = draft.layout;
  layout.schedule = layout.pp > 1 ? schedule_of(toml) : ScheduleKind::kOneFOneB;
  const bool is_interleaved = layout.schedule == ScheduleKind::kInterleaved;
  const std::vector<Value>* parts = toml.list("parallelism.module_fqns_per_model_part");
  const auto each = toml.whole("parallelism.pipeline_parallel_layers_per_stage", 1, kMaxAxis);
  const int64_t first = toml.whole_or("parallelism.pipeline_parallel_first_stage_less_layers", 1, 0, kMaxAxis);
  const int64_t last = toml.whole_or("parallelism.pipeline_parallel_last_stage_less_layers", 1, 0, kMaxAxis);
  if (layout.pp == 1) return;
  if (parts != nullptr) {
    for (const Value& part : *parts) draft.stage_layers.push_back(layers_in(part));
    const auto num_stages = static_cast<int64_t>(parts->size());
    if (num_stages == 0 || num_stages % layout.pp != 0) {
      toml.fail("parallelism.module_fqns_per_model_part",
                fmt::format("{} stages are no multiple of pp {}", num_stages, layout.pp));
    }
    layout.vp = num_stages / layout.pp;
    return;
  }
  const int64_t num_layers = draft.model ? draft.model->num_layers : spec::get_model(options.model).num_layers;
  const int64_t units = num_layers + first + last;
  const int64_t num_stages = each ? (units + *each - 1) / *each : layout.pp * (is_interleaved ? 2 : 1);
  if (num_stages % layout.pp != 0 || num_stages > units) {
    toml.fail("parallelism.pipeline_parallel_degree",
              fmt::format("{} stages of {} layers do not spread over pp {}", num_stages, num_layers, layout.pp));
  }
  layout.vp = num_stages / layout.pp;
  draft.stage_layers = dealt(num_layers, num_stages, first, last);
  for (const int64_t layers : {draft.stage_layers.front(), draft.stage_layers.back()}) {
    if (layers < 1) {
      toml.fail("parallelism.pipeline_parallel_degree",
                fmt::format("{} stages of {} layers, {} less in the first and {} in the last, leave one with {}",
                            num_stages, num_layers, first, last, layers));
    }
  }
}

void read_batch(Settings& toml, Draft& draft) {
  Layout& layout = draft.layout;
  const int64_t local = toml.whole_or("training.local_batch_size", 8, 1, kMaxAxis);
  const int64_t global = toml.whole_or("training.global_batch_size", -1, -1, kMaxCount);
  const int64_t micro = toml.whole_or("parallelism.pipeline_parallel_microbatch_size", 1, 1, kMaxAxis);
  draft.global_batch = global > 0 ? global : local * draft.dp;
  layout.mb = layout.pp > 1 ? micro : local;
  if (local % layout.mb != 0) {
    toml.fail("training.local_batch_size", fmt::format("{} is no multiple of the micro-batch {}", local, layout.mb));
  }
  if (draft.global_batch % (local * draft.dp) != 0) {
    toml.fail("training.global_batch_size",
              fmt::format("{} is no multiple of local_batch_size {} x dp {}", draft.global_batch, local, draft.dp));
  }
  if (layout.pp > 1 && draft.global_batch > local * draft.dp) {
    draft.notes.push_back(
        fmt::format("its pipeline drains after every {} sequences; it is priced as drained once a step", local));
  }
  draft.sequence_length = toml.whole_or("training.seq_len", 2048, 1, kMaxCount);
}

void read_recomputation(Settings& toml, Draft& draft) {
  const std::string mode = toml.text_or("activation_checkpoint.mode", "selective");
  const std::string option = toml.text_or("activation_checkpoint.selective_ac_option", "2");
  if (mode == "none") return;
  if (mode == "full") {
    draft.layout.checkpointing = Checkpointing::kFull;
  } else if (mode == "selective") {
    draft.layout.checkpointing = Checkpointing::kSelective;
    if (option != "op") {
      draft.notes.push_back(fmt::format("selective_ac_option {}: priced as selective by operator", option));
    }
  } else {
    toml.fail("activation_checkpoint.mode", fmt::format("\"{}\" cannot be priced; none, selective and full can", mode));
  }
}

spec::Precision precision_of(Settings& toml) {
  if (const std::vector<Value>* converters = toml.list("model.converters")) {
    for (const Value& name : *converters) {
      if (name.text.find("float8") != std::string::npos) return spec::Precision::kFp8;
    }
  }
  const std::string type = toml.one_of("training.mixed_precision_param", "bfloat16", {"bfloat16", "float32"});
  return type == "float32" ? spec::Precision::kFp32 : spec::Precision::kBf16;
}

}  // namespace

Draft read_torchtitan(std::string_view text, const ImportOptions& options) {
  Settings toml = toml_settings(text, options.where);
  if (toml.empty()) toml.fail("file", "has no settings");
  Draft draft;
  Layout& layout = draft.layout;
  layout.tp = axis(toml, "tensor_parallel_degree");
  layout.pp = axis(toml, "pipeline_parallel_degree");
  layout.cp = axis(toml, "context_parallel_degree");
  if (axis(toml, "expert_parallel_degree") > 1) {
    toml.fail("parallelism.expert_parallel_degree", "mixtures of experts cannot be priced");
  }
  if (layout.tp * layout.pp > kMaxAxis || layout.tp * layout.pp * layout.cp > kMaxAxis) {
    toml.fail("parallelism", fmt::format("more than {} ranks", kMaxAxis));
  }
  layout.sp = layout.tp > 1;
  read_model(toml, options, draft);
  read_sharding(toml, options, draft);
  read_stages(toml, options, draft);
  read_batch(toml, draft);
  read_recomputation(toml, draft);
  draft.precision = precision_of(toml);
  if (toml.is_on("training.enable_cpu_offload")) {
    draft.notes.emplace_back("enable_cpu_offload: priced without, all stays on the GPUs");
  }
  draft.ignored = toml.ignored();
  return draft;
}

}  // namespace layline::exporting
