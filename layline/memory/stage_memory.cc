#include "layline/memory/stage_memory.h"

#include <algorithm>
#include <numeric>

#include "layline/memory/parameters.h"
#include "layline/memory/stage_of_operators.h"
#include "layline/schedule/in_flight.h"

namespace layline::memory {
namespace {

struct Stage {
  const spec::Job& job;
  const spec::Coefficients& k;
  const layout::Layout& layout;
  const StageGroup& group;
  const LayerActivations& layer;
  int64_t micro_batches;

  double parameters() const { return stage_parameters(job.model, layout.tp, group); }
  double tokens() const {
    return static_cast<double>(layout.mb) * static_cast<double>(job.sequence_length) / static_cast<double>(layout.cp);
  }
  // Layers that the host has issued ahead of the device. In a pipeline these are forwards of the warm-up, but for its
  // last two, which wait for a neighbour, and for the first layers, with which the device keeps up.
  double launched_ahead() const {
    const double most = job.engine.launch_ahead_layers * k.launch_ahead_scale;
    const double layers = static_cast<double>(group.num_layers);
    if (layout.pp == 1) return std::min(most, layers);
    const double warm_up = static_cast<double>(layout.pp - 2) * layers;
    return std::clamp(2 * warm_up - most, 0.0, most);
  }
  // Layers' worth of kept activations and of recomputed layers' inputs in one chunk of this rank.
  double layers_per_chunk() const { return static_cast<double>(group.num_layers) / static_cast<double>(layout.vp); }
  double recomputed_per_chunk() const {
    if (layout.checkpointing != layout::Checkpointing::kFull) return 0;
    if (layout.full_layers == 0) return layers_per_chunk();
    return std::min(layers_per_chunk(), static_cast<double>(layout.full_layers));
  }
};

void add_states(const Stage& stage, double shard, StageMemory& memory) {
  const spec::Engine& engine = stage.job.engine;
  const int zero = stage.layout.zero;
  const double n = stage.parameters();
  memory[Term::kWeights] = engine.weight_bytes * n / (zero >= 3 ? shard : 1);
  const double accumulators = stage.job.precision == spec::Precision::kBf16 ? engine.bf16_gradient_bytes : 0;
  memory[Term::kGradients] =
      (engine.gradient_bytes + engine.local_gradient_bytes + accumulators) * n / (zero >= 2 ? shard : 1);
  memory[Term::kOptimizer] = engine.optimizer_bytes * n / (zero >= 1 ? shard : 1);
}

void add_activations(const Stage& stage, StageMemory& memory) {
  const double in_flight = static_cast<double>(schedule::max_in_flight(
      stage.layout.schedule, stage.layout.pp, stage.layout.vp, stage.group.first_rank, stage.micro_batches));
  const double recomputed = stage.recomputed_per_chunk();
  const double kept = stage.layers_per_chunk() - recomputed;
  const double kept_bytes =
      stage.layout.checkpointing == layout::Checkpointing::kFull ? stage.layer.plain_bytes : stage.layer.kept_bytes;
  memory[Term::kActivations] = in_flight * (kept * kept_bytes + recomputed * stage.layer.checkpointed_bytes);
  memory[Term::kTransient] =
      (recomputed > 0 ? stage.k.recompute_transient_layers : stage.k.transient_layers) * stage.layer.plain_bytes;
  memory[Term::kTransient] += stage.launched_ahead() * stage.layer.gathered_bytes;
  if (stage.layout.pp > 1) {
    const double share = stage.layout.sp ? static_cast<double>(stage.layout.tp) : 1;
    const double boundary = stage.tokens() * static_cast<double>(stage.job.model.hidden) * 2 / share;
    memory[Term::kPipeline] = boundary * (stage.job.engine.frees_sent_outputs ? 1 : in_flight);
  }
}

void add_head(const Stage& stage, StageMemory& memory) {
  if (!stage.group.has_head) return;
  const double share =
      stage.job.engine.logits == spec::Logits::kVocabParallel ? static_cast<double>(stage.layout.tp) : 1;
  memory[Term::kLogits] = stage.tokens() * padded_vocab(stage.job.model, stage.layout.tp) / share *
                          stage.job.engine.logits_live_bytes * stage.k.logits_scale;
}

void add_communication(const Stage& stage, double shard, StageMemory& memory) {
  const spec::Engine& engine = stage.job.engine;
  if (stage.layout.zero >= 3) {
    // Two gathered layers: the one in use and the one that is prefetched.
    memory[Term::kCommunication] = 2 * layer_parameters_per_rank(stage.job.model, stage.layout.tp) *
                                   (engine.weight_bytes + engine.reduction_bytes);
  } else if (shard > 1) {
    memory[Term::kCommunication] = std::min(engine.bucket_elements, stage.parameters()) * engine.bucket_bytes;
  }
}

}  // namespace

double StageMemory::allocated() const { return total() - (*this)[Term::kReserve] - (*this)[Term::kContext]; }

double StageMemory::reserved() const { return total() - (*this)[Term::kContext]; }

double StageMemory::total() const { return std::accumulate(bytes.begin(), bytes.end(), 0.0); }

int64_t shard_size(const layout::Layout& layout) { return layout.hsdp > 0 ? layout.hsdp : layout.dp * layout.cp; }

StageMemory stage_memory(const spec::Job& job, const spec::Coefficients& k, const layout::Layout& layout,
                         const StageGroup& group, const LayerActivations& layer, int64_t micro_batches) {
  if (job.engine.working_set == spec::WorkingSet::kOperators) {
    StageMemory peak = stage_of_operators(job, layout, group, layer, micro_batches);
    peak[Term::kReserve] = peak.total() * job.engine.reserve_fraction * k.reserve_scale;
    peak[Term::kContext] = job.engine.context_bytes * k.context_scale;
    return peak;
  }
  const Stage stage{job, k, layout, group, layer, micro_batches};
  const double shard = static_cast<double>(shard_size(layout));
  StageMemory memory;
  add_states(stage, shard, memory);
  StageMemory step = memory;
  add_activations(stage, memory);
  add_head(stage, memory);
  add_communication(stage, shard, memory);
  step[Term::kCommunication] = memory[Term::kCommunication];
  step[Term::kOptimizerStep] = job.engine.step_bytes * stage.parameters() / (layout.zero >= 1 ? shard : 1);
  StageMemory& peak = step.total() > memory.total() ? step : memory;
  peak[Term::kReserve] = peak.total() * job.engine.reserve_fraction * k.reserve_scale;
  peak[Term::kContext] = job.engine.context_bytes * k.context_scale;
  return peak;
}

}  // namespace layline::memory
