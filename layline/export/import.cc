#include "layline/export/import.h"

#include <fmt/format.h>

#include <optional>
#include <tuple>
#include <utility>

#include "layline/base/error.h"
#include "layline/export/readers.h"
#include "layline/export/stage_layers.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/job.h"
#include "layline/spec/registry.h"

namespace layline::exporting {
namespace {

using layout::Layout;
using spec::Model;

Draft read(std::string_view text, Framework framework, const ImportOptions& options) {
  switch (framework) {
    case Framework::kMegatron:
      return read_megatron(text, options);
    case Framework::kNemo:
      return read_nemo(text, options);
    case Framework::kTorchtitan:
      return read_torchtitan(text, options);
    case Framework::kNanotron:
      return read_nanotron(text, options);
    case Framework::kDeepspeed:
      return read_deepspeed(text, options);
    case Framework::kLayline:
      break;
  }
  return read_layline(text, options);
}

bool is_same(const Model& a, const Model& b, bool knows_vocab) {
  const bool same_sizes = a.num_layers == b.num_layers && a.hidden == b.hidden && a.num_heads == b.num_heads &&
                          a.num_kv_heads == b.num_kv_heads && a.head_size == b.head_size &&
                          a.ffn_hidden == b.ffn_hidden && (!knows_vocab || a.vocab == b.vocab);
  return same_sizes && a.mlp == b.mlp && a.norm == b.norm && a.position == b.position &&
         a.tied_embeddings == b.tied_embeddings && a.qkv_bias == b.qkv_bias && a.linear_bias == b.linear_bias;
}

// Of models with the same sizes the one of that name, else one with the same norm and positions, else the shortest
// name.
std::tuple<bool, bool, size_t> distance(const Model& shipped, const Model& wanted) {
  const bool same_numbers = shipped.norm_epsilon == wanted.norm_epsilon && shipped.rope.theta == wanted.rope.theta &&
                            shipped.rope.scaling == wanted.rope.scaling && shipped.rope.factor == wanted.rope.factor;
  return {shipped.name != wanted.name, !same_numbers, shipped.name.size()};
}

std::optional<Model> shipped_model(const Draft& draft) {
  std::optional<Model> best;
  for (const spec::ShippedSpec& shipped : spec::shipped_specs()) {
    if (shipped.kind != spec::SpecKind::kModel) continue;
    const Model model = spec::get_model(std::string(shipped.name));
    if (!is_same(model, *draft.model, draft.knows_vocab)) continue;
    if (!best || distance(model, *draft.model) < distance(*best, *draft.model)) best = model;
  }
  return best;
}

// The shipped model of these sizes, or the sizes under a name of their own.
void find_model(const Draft& draft, const ImportOptions& options, Imported& imported) {
  if (!options.model.empty()) {
    imported.model = spec::get_model(options.model);
    imported.is_known_model = true;
    return;
  }
  if (!draft.model) throw base::InputError(options.where, "does not say the model's sizes: give --model");
  if (const std::optional<Model> shipped = shipped_model(draft)) {
    imported.model = *shipped;
    imported.is_known_model = true;
    if (!draft.knows_vocab) {
      imported.notes.push_back(fmt::format("the vocabulary is not in the file: {} has these sizes, its {} is taken",
                                           shipped->name, shipped->vocab));
    }
    return;
  }
  imported.model = *draft.model;
  imported.model.name = "imported";
  imported.model.title = fmt::format("{} layers of {}", imported.model.num_layers, imported.model.hidden);
  imported.model.source = options.where;
  spec::check_model(imported.model, options.where);
  if (!draft.knows_vocab) {
    imported.notes.push_back(fmt::format(
        "the vocabulary is not in the file: {} is taken, give --model if it is another", imported.model.vocab));
  }
}

[[noreturn]] void contradict(const ImportOptions& options, const std::string& what) {
  throw base::InputError(options.where, what);
}

// GPUs and replicas, each from the other where one is missing.
void find_ranks(const Draft& draft, const ImportOptions& options, Imported& imported) {
  Layout& layout = imported.layout;
  for (const int64_t axis : {layout.tp, layout.pp, layout.cp, layout.vp, layout.mb}) {
    if (axis < 1 || axis > layout::kMaxAxis) contradict(options, fmt::format("an axis of {} ranks", axis));
  }
  const double product =
      static_cast<double>(layout.tp) * static_cast<double>(layout.pp) * static_cast<double>(layout.cp);
  if (product > static_cast<double>(layout::kMaxAxis))
    contradict(options, fmt::format("{:g} ranks a replica", product));
  const int64_t replica = layout.tp * layout.pp * layout.cp;
  const std::string axes = fmt::format("tp {} x pp {} x cp {} = {}", layout.tp, layout.pp, layout.cp, replica);
  imported.num_gpus = options.num_gpus > 0 ? options.num_gpus : draft.num_gpus;
  if (imported.num_gpus == 0 && draft.dp == 0) contradict(options, "does not say how many GPUs run it: give --gpus");
  if (imported.num_gpus == 0) imported.num_gpus = draft.dp * replica;
  if (imported.num_gpus < 1 || imported.num_gpus > layout::kMaxAxis) {
    contradict(options, fmt::format("{} GPUs, want 1 to {}", imported.num_gpus, layout::kMaxAxis));
  }
  if (imported.num_gpus % replica != 0) {
    contradict(options, fmt::format("world size {} is not divisible by {}", imported.num_gpus, axes));
  }
  layout.dp = imported.num_gpus / replica;
  if (draft.dp > 0 && draft.dp != layout.dp) {
    contradict(options, fmt::format("says {} data-parallel replicas, but world size {} over {} leaves {}", draft.dp,
                                    imported.num_gpus, axes, layout.dp));
  }
}

void find_batch(const Draft& draft, const ImportOptions& options, Imported& imported) {
  const Layout& layout = imported.layout;
  const int64_t each = layout.dp * layout.mb;
  imported.sequence_length = options.sequence_length > 0 ? options.sequence_length : draft.sequence_length;
  imported.global_batch = options.global_batch > 0 ? options.global_batch : draft.global_batch;
  if (imported.sequence_length == 0) contradict(options, "does not say the sequence length: give --seq-len");
  if (imported.global_batch == 0) {
    imported.global_batch = each;
    imported.notes.push_back(fmt::format("no global batch: {}, one micro-batch on each replica, is taken", each));
  }
  if (imported.global_batch % each != 0) {
    contradict(options, fmt::format("global batch {} is not divisible by micro-batch {} x dp {} = {}",
                                    imported.global_batch, layout.mb, layout.dp, each));
  }
}

void find_split(const Draft& draft, const ImportOptions& options, Imported& imported) {
  spec::Job job;
  job.model = imported.model;
  job.engine = spec::get_engine(engine_of(imported.framework));
  Layout& layout = imported.layout;
  if (draft.stage_layers.empty()) {
    if (imported.framework != Framework::kLayline) layout.split = job.engine.default_split;
    return;
  }
  int64_t sum = 0;
  for (const int64_t layers : draft.stage_layers) sum += layers;
  if (sum != job.model.num_layers || static_cast<int64_t>(draft.stage_layers.size()) != layout.num_virtual_stages()) {
    contradict(options, fmt::format("its {} stages have {} layers in all, but pp {} x vp {} = {} and the model has {}",
                                    draft.stage_layers.size(), sum, layout.pp, layout.vp, layout.num_virtual_stages(),
                                    job.model.num_layers));
  }
  set_stage_layers(job, draft.stage_layers, layout);
}

bool is_text(std::string_view text) { return text.find('\0') == std::string_view::npos; }

void check_text(std::string_view text, const std::string& where) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw base::InputError(where, "is empty");
  if (!is_text(text)) throw base::InputError(where, "is no text file");
  if (static_cast<int64_t>(text.size()) > kMaxImportBytes) {
    throw base::InputError(where, fmt::format("is larger than {} bytes", kMaxImportBytes));
  }
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

Framework guess_framework(std::string_view text, const std::string& where) {
  check_text(text, where);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const char first = text[text.find_first_not_of(" \t\r\n")];
  if (first == '{') return has(text, "\"sequence_length\"") ? Framework::kLayline : Framework::kDeepspeed;
  if (has(text, "--tensor-model-parallel-size") || has(text, "--num-layers") || text.starts_with("#!")) {
    return has(text, "--deepspeed") ? Framework::kDeepspeed : Framework::kMegatron;
  }
  if (has(text, "[parallelism]") || has(text, "[training]")) return Framework::kTorchtitan;
  if (has(text, "tensor_model_parallel_size:")) return Framework::kNemo;
  if (has(text, "parallelism:") && has(text, "tokens:")) return Framework::kNanotron;
  throw base::InputError(where, "looks like no framework's file: say which with --from");
}

Imported import_layout(std::string_view text, Framework framework, const ImportOptions& options) {
  check_text(text, options.where);
  Draft draft = read(text, framework, options);
  Imported imported;
  imported.framework = framework;
  imported.precision = draft.precision;
  imported.layout = draft.layout;
  imported.notes = std::move(draft.notes);
  imported.ignored = std::move(draft.ignored);
  find_model(draft, options, imported);
  find_ranks(draft, options, imported);
  find_batch(draft, options, imported);
  find_split(draft, options, imported);
  if (imported.layout.tp == 1) imported.layout.sp = false;
  return imported;
}

}  // namespace layline::exporting
