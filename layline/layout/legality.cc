#include "layline/layout/legality.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/layout/stage_split.h"

namespace layline::layout {
namespace {

template <typename T>
bool has(const std::vector<T>& list, T item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool in_range(int64_t axis) { return axis >= 1 && axis <= kMaxAxis; }

Rule check_sizes(const Layout& layout, const spec::Job& job) {
  if (!in_range(layout.dp) || !in_range(layout.tp) || !in_range(layout.pp) || !in_range(layout.cp) ||
      !in_range(layout.ep) || !in_range(layout.vp) || !in_range(layout.mb)) {
    return Rule::kAxisRange;
  }
  int64_t left = job.num_gpus;  // divided step by step: the product of the axes may not fit 64 bits
  for (const int64_t axis : {layout.dp, layout.tp, layout.pp, layout.cp}) {
    if (left % axis != 0) return Rule::kWorldSize;
    left /= axis;
  }
  if (left != 1) return Rule::kWorldSize;
  return layout.ep == 1 ? Rule::kNone : Rule::kExperts;
}

Rule check_tensor_parallel(const Layout& layout, const spec::Job& job) {
  if (layout.tp == 1) return Rule::kNone;
  const spec::Model& model = job.model;
  if (!job.engine.has_tensor_parallel) return Rule::kTensorParallel;
  if (model.num_heads % layout.tp != 0) return Rule::kHeads;
  if (model.num_kv_heads % layout.tp != 0 && layout.tp % model.num_kv_heads != 0) return Rule::kKeyValueHeads;
  if (model.ffn_hidden % layout.tp != 0) return Rule::kFeedForward;
  return Rule::kNone;
}

Rule check_sequence(const Layout& layout, const spec::Job& job) {
  if (layout.cp > 1) {
    if (!job.engine.has_context_parallel) return Rule::kContextParallel;
    if (job.sequence_length % (2 * layout.cp) != 0) return Rule::kContextSequence;
  }
  if (layout.tp == 1) return Rule::kNone;
  if (!layout.sp) return job.engine.sequence_parallel_always ? Rule::kSequenceParallelAlways : Rule::kNone;
  if (!job.engine.has_sequence_parallel) return Rule::kSequenceParallel;
  return (job.sequence_length / layout.cp) % layout.tp == 0 ? Rule::kNone : Rule::kSequenceShards;
}

Rule check_pipeline(const Layout& layout, const spec::Job& job) {
  const spec::Engine& engine = job.engine;
  const bool is_interleaved = layout.schedule == ScheduleKind::kInterleaved;
  if (layout.pp > 1 && !engine.has_pipeline_parallel) return Rule::kPipelineParallel;
  if (layout.vp > 1) {
    if (!engine.has_virtual_stages) return Rule::kVirtualStages;
    if (layout.pp == 1) return Rule::kVirtualWithoutPipeline;
  }
  if (!has(engine.schedules, layout.schedule)) return Rule::kSchedule;
  if (layout.vp > 1 && !is_interleaved) return Rule::kVirtualSchedule;
  if (layout.vp == 1 && is_interleaved) return Rule::kInterleavedOneChunk;
  if (job.global_batch % (layout.dp * layout.mb) != 0) return Rule::kMicroBatches;
  if (is_interleaved && engine.interleaved_needs_multiple_of_pp && num_micro_batches(layout, job) % layout.pp != 0) {
    return Rule::kInterleavedMultiple;
  }
  return Rule::kNone;
}

Rule check_split(const Layout& layout, const spec::Job& job) {
  if (!has(job.engine.splits, layout.split)) return Rule::kSplit;
  const int64_t num_layers = job.model.num_layers;
  const int64_t num_stages = layout.num_virtual_stages();
  if (layout.split == SplitKind::kExplicit) {
    const std::vector<int64_t>& counts = layout.explicit_split;
    if (static_cast<int64_t>(counts.size()) != num_stages) return Rule::kExplicitCount;
    int64_t left = num_layers;
    for (const int64_t count : counts) {
      if (count < 1 || count > left) return Rule::kExplicitLayers;
      left -= count;
    }
    return left == 0 ? Rule::kNone : Rule::kExplicitLayers;
  }
  if (num_layers < num_stages) return Rule::kTooFewLayers;
  // The last stage is one of those without remainder: with its norm and head it needs three units, and then the first,
  // with its embedding, has enough too.
  const bool is_uniform = layout.split == SplitKind::kUniform && num_stages > 1;
  if (is_uniform && (num_layers + kUniformEndUnits) / num_stages <= kUniformHeadUnits) return Rule::kUniformEnds;
  return Rule::kNone;
}

Rule check_sharding(const Layout& layout, const spec::Job& job) {
  if (!has(job.engine.zero_stages, layout.zero)) return Rule::kZero;
  if (layout.hsdp == 0) return Rule::kNone;
  if (!job.engine.has_hybrid_sharding) return Rule::kHybridSharding;
  if (layout.zero != 3) return Rule::kHybridZero;
  return layout.hsdp > 0 && layout.dp % layout.hsdp == 0 ? Rule::kNone : Rule::kHybridGroups;
}

Rule check_kernels(const Layout& layout, const spec::Job& job) {
  const spec::Engine& engine = job.engine;
  if (!has(engine.checkpointing, layout.checkpointing)) return Rule::kCheckpointing;
  if (layout.full_layers != 0 && !engine.has_partial_checkpointing) return Rule::kPartialCheckpointing;
  if (!has(engine.attention_kernels, layout.attention)) return Rule::kAttention;
  return has(engine.norm_kernels, layout.norm) ? Rule::kNone : Rule::kNorm;
}

template <typename T>
std::string names_of(const std::vector<T>& items) {
  std::vector<std::string_view> names;
  for (const T item : items) names.push_back(name_of(item));
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

// Writes the sentence for each rule.
struct Sentence {
  const Layout& layout;
  const spec::Job& job;

  const spec::Engine& engine() const { return job.engine; }
  const spec::Model& model() const { return job.model; }
  std::string lacks(std::string_view what) const { return fmt::format("engine {} has no {}", engine().name, what); }
  std::string lacks(std::string_view what, std::string_view has) const {
    return fmt::format("engine {} has no {} (it has {})", engine().name, what, has);
  }

  std::string size(Rule rule) const;
  std::string width(Rule rule) const;
  std::string sequence(Rule rule) const;
  std::string pipeline(Rule rule) const;
  std::string split(Rule rule) const;
  std::string sharding(Rule rule) const;
  std::string kernel(Rule rule) const;
};

std::string Sentence::size(Rule rule) const {
  if (rule == Rule::kAxisRange) {
    return fmt::format("dp {}, tp {}, pp {}, cp {}, ep {}, vp {}, mb {}: each must be from 1 to {}", layout.dp,
                       layout.tp, layout.pp, layout.cp, layout.ep, layout.vp, layout.mb, kMaxAxis);
  }
  if (rule == Rule::kExperts) return fmt::format("ep {} needs a mixture of experts", layout.ep);
  const double ranks = static_cast<double>(layout.dp) * static_cast<double>(layout.tp) *
                       static_cast<double>(layout.pp) * static_cast<double>(layout.cp);
  return fmt::format("dp {} · tp {} · pp {} · cp {} = {:.15g} ranks, the job has {} GPUs", layout.dp, layout.tp,
                     layout.pp, layout.cp, ranks, job.num_gpus);
}

std::string Sentence::width(Rule rule) const {
  if (rule == Rule::kTensorParallel) return lacks("tensor parallelism");
  if (rule == Rule::kHeads) return fmt::format("tp {} does not divide {} heads", layout.tp, model().num_heads);
  if (rule == Rule::kFeedForward) {
    return fmt::format("tp {} does not divide the feed-forward width {}", layout.tp, model().ffn_hidden);
  }
  return fmt::format("tp {} and {} key-value heads: neither divides the other", layout.tp, model().num_kv_heads);
}

std::string Sentence::sequence(Rule rule) const {
  switch (rule) {
    case Rule::kContextParallel:
      return lacks("context parallelism");
    case Rule::kContextSequence:
      return fmt::format("2·cp = {} does not divide the sequence length {}", 2 * layout.cp, job.sequence_length);
    case Rule::kSequenceParallel:
      return lacks("sequence parallelism");
    case Rule::kSequenceParallelAlways:
      return fmt::format("engine {} always runs tp {} with sequence parallelism (sp)", engine().name, layout.tp);
    default:
      return fmt::format("sp: tp {} does not divide the {} tokens of a sequence on each rank", layout.tp,
                         job.sequence_length / layout.cp);
  }
}

std::string Sentence::pipeline(Rule rule) const {
  switch (rule) {
    case Rule::kPipelineParallel:
      return lacks("pipeline parallelism");
    case Rule::kVirtualStages:
      return lacks("virtual stages");
    case Rule::kVirtualWithoutPipeline:
      return fmt::format("vp {} needs a pipeline (pp > 1)", layout.vp);
    case Rule::kSchedule:
      return lacks(fmt::format("schedule {}", name_of(layout.schedule)), names_of(engine().schedules));
    case Rule::kVirtualSchedule:
      return fmt::format("schedule {} runs one chunk a rank, vp is {}", name_of(layout.schedule), layout.vp);
    case Rule::kInterleavedOneChunk:
      return "schedule interleaved needs vp of at least 2";
    case Rule::kMicroBatches:
      return fmt::format("dp {} · mb {} = {} does not divide the global batch {}", layout.dp, layout.mb,
                         layout.dp * layout.mb, job.global_batch);
    default:
      return fmt::format("interleaved: {} micro-batches are not a multiple of pp {}", num_micro_batches(layout, job),
                         layout.pp);
  }
}

std::string Sentence::split(Rule rule) const {
  const int64_t num_stages = layout.num_virtual_stages();
  switch (rule) {
    case Rule::kSplit:
      return lacks(fmt::format("split {}", name_of(layout.split)), names_of(engine().splits));
    case Rule::kTooFewLayers:
      return fmt::format("pp {} · vp {} = {} stages, the model has {} layers", layout.pp, layout.vp, num_stages,
                         model().num_layers);
    case Rule::kUniformEnds:
      return fmt::format(
          "split uniform: {} layers, embedding, norm and head on {} stages leave the last without a layer",
          model().num_layers, num_stages);
    case Rule::kExplicitCount:
      return fmt::format("the split has {} counts, pp {} · vp {} = {} stages", layout.explicit_split.size(), layout.pp,
                         layout.vp, num_stages);
    default:
      return fmt::format("the split {} must be at least 1 each and add up to {} layers",
                         fmt::join(layout.explicit_split, ","), model().num_layers);
  }
}

std::string Sentence::sharding(Rule rule) const {
  switch (rule) {
    case Rule::kZero:
      return lacks(fmt::format("ZeRO-{}", layout.zero), fmt::format("ZeRO {}", fmt::join(engine().zero_stages, ", ")));
    case Rule::kHybridSharding:
      return lacks("hybrid sharding (hsdp)");
    case Rule::kHybridZero:
      return fmt::format("hsdp {} is ZeRO-3 inside groups, the layout has ZeRO-{}", layout.hsdp, layout.zero);
    default:
      return fmt::format("hsdp {} does not divide dp {}", layout.hsdp, layout.dp);
  }
}

std::string Sentence::kernel(Rule rule) const {
  switch (rule) {
    case Rule::kCheckpointing:
      return lacks(fmt::format("checkpointing {}", name_of(layout.checkpointing)), names_of(engine().checkpointing));
    case Rule::kPartialCheckpointing:
      return lacks(fmt::format("checkpointing of the first {} layers of a stage", layout.full_layers));
    case Rule::kAttention:
      return lacks(fmt::format("attention kernel {}", name_of(layout.attention)), names_of(engine().attention_kernels));
    default:
      return lacks(fmt::format("norm kernel {}", name_of(layout.norm)), names_of(engine().norm_kernels));
  }
}

std::string reason_for(Rule rule, const Sentence& sentence) {
  if (rule <= Rule::kExperts) return sentence.size(rule);
  if (rule <= Rule::kFeedForward) return sentence.width(rule);
  if (rule <= Rule::kSequenceShards) return sentence.sequence(rule);
  if (rule <= Rule::kInterleavedMultiple) return sentence.pipeline(rule);
  if (rule <= Rule::kExplicitLayers) return sentence.split(rule);
  if (rule <= Rule::kHybridGroups) return sentence.sharding(rule);
  return sentence.kernel(rule);
}

}  // namespace

Rule first_broken_rule(const Layout& layout, const spec::Job& job) {
  using Check = Rule (*)(const Layout&, const spec::Job&);
  constexpr Check kChecks[] = {check_sizes, check_tensor_parallel, check_sequence, check_pipeline,
                               check_split, check_sharding,        check_kernels};
  for (const Check check : kChecks) {
    if (const Rule rule = check(layout, job); rule != Rule::kNone) return rule;
  }
  return Rule::kNone;
}

Legality legality(const Layout& layout, const spec::Job& job) {
  const Rule rule = first_broken_rule(layout, job);
  if (rule == Rule::kNone) return {};
  return {false, rule, reason_for(rule, Sentence{layout, job})};
}

}  // namespace layline::layout
