#include "layline/memory/stage_of_operators.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#include "layline/layout/stage_split.h"
#include "layline/memory/buckets.h"
#include "layline/memory/chunk_passes.h"
#include "layline/memory/stage_moments.h"

namespace layline::memory {

namespace {

// Layers of a rank's chunks, dealt as stage_groups.cc deals them, or as listed.
class ChunkLayers {
 public:
  ChunkLayers(const layout::Layout& layout, int64_t num_layers, const StageGroup& group)
      : layout_(layout), group_(group) {
    const int64_t stages = layout.num_virtual_stages();
    is_uniform_ = layout.split == layout::SplitKind::kUniform && stages > 1;
    const int64_t units = num_layers + (is_uniform_ ? layout::kUniformEndUnits : 0);
    base_ = units / stages;
    num_larger_ = units - base_ * stages;
  }

  ChunkParts parts(int64_t chunk) const {
    ChunkParts result;
    result.has_embedding = group_.has_embedding && chunk == 0;
    result.has_head = group_.has_head && chunk == layout_.vp - 1;
    result.num_layers = static_cast<double>(layers(chunk));
    if (layout_.vp > 1 && is_uniform_) {
      if (result.has_embedding) result.num_layers -= layout::kUniformEmbeddingUnits;
      if (result.has_head) result.num_layers -= layout::kUniformHeadUnits;
    }
    return result;
  }

 private:
  int64_t layers(int64_t chunk) const {
    if (layout_.vp == 1) return group_.num_layers;
    if (!group_.chunk_layers.empty()) return group_.chunk_layers[static_cast<size_t>(chunk)];
    return base_ + (chunk * layout_.pp + group_.first_rank < num_larger_ ? 1 : 0);
  }

  const layout::Layout& layout_;
  const StageGroup& group_;
  bool is_uniform_ = false;
  int64_t base_ = 0, num_larger_ = 0;
};

// Of a rank, in order; without an allocation where they are few.
class ChunkRuns {
 public:
  void append(const ChunkRun& run) {
    if (size_ == few_.size() && many_.empty()) many_.assign(few_.begin(), few_.end());
    if (many_.empty()) {
      few_[size_++] = run;
    } else {
      many_.push_back(run);
    }
  }
  std::span<const ChunkRun> all() const {
    return many_.empty() ? std::span<const ChunkRun>(few_.data(), size_) : std::span<const ChunkRun>(many_);
  }

 private:
  std::array<ChunkRun, 4> few_;
  size_t size_ = 0;
  std::vector<ChunkRun> many_;
};

class StageOfOperators {
 public:
  StageOfOperators(const spec::Job& job, const layout::Layout& layout, const StageGroup& group,
                   const LayerActivations& layer, int64_t micro_batches)
      : job_(job), layout_(layout), group_(group), layer_(layer), micro_batches_(micro_batches) {
    const ChunkLayers layers(layout, job.model.num_layers, group);
    ChunkRun run{0, 1, {}};
    ChunkParts parts = layers.parts(0);
    for (int64_t chunk = 1; chunk < layout.vp; ++chunk) {
      const ChunkParts next = layers.parts(chunk);
      if (next == parts) {
        ++run.num_chunks;
        continue;
      }
      append(run, parts);
      run = {chunk, 1, {}};
      parts = next;
    }
    append(run, parts);
  }

  StageMemory peak() const {
    const StageMemory base = states();
    StageMemory pass = base, step = base;
    const StageMoment moment = passes();
    pass[Term::kActivations] = moment.activations;
    pass[Term::kTransient] = moment.transient;
    pass[Term::kLogits] = moment.logits;
    pass[Term::kPipeline] = moment.pipeline;
    step[Term::kOptimizerStep] = joint_gradients();
    return step.total() > pass.total() ? step : pass;
  }

 private:
  void append(ChunkRun& run, const ChunkParts& parts) {
    buckets_.add(buckets_of(job_, layout_, parts), static_cast<double>(run.num_chunks));
    run.passes = chunk_passes(job_, layout_, layer_, parts, defers());
    runs_.append(run);
  }

  StageMoment passes() const {
    const double message = layout_.pp > 1 ? layer_.passes.sizes.hidden : 0;
    StageOnList stage{layout_.schedule, layout_.pp, group_.first_rank, micro_batches_,
                      message,          layout_.vp, runs_.all()};
    StageMoment most = peak_of_list(stage);
    // Later ranks keep fewer micro-batches, but more of them wait for their weight gradients where these are deferred.
    const int64_t num_ranks = defers() ? group_.num_ranks : 1;
    while (++stage.rank < group_.first_rank + num_ranks) {
      const StageMoment moment = peak_of_list(stage);
      if (moment.total() > most.total()) most = moment;
    }
    return most;
  }

  bool defers() const { return layout_.schedule == spec::ScheduleKind::kZeroBubble; }

  double dp() const { return static_cast<double>(layout_.dp); }
  double shard() const { return layout_.zero >= 1 ? dp() : 1; }

  StageMemory states() const {
    const OperatorSizes& sizes = layer_.passes.sizes;
    StageMemory memory;
    memory[Term::kWeights] = sizes.element * buckets_.elements;
    memory[Term::kGradients] = job_.engine.gradient_bytes * buckets_.elements;
    constexpr double kMasterBytes = 4;  // 32-bit weights are their own
    const double optimizer_bytes = job_.engine.optimizer_bytes - (sizes.is_narrow ? 0 : kMasterBytes);
    memory[Term::kOptimizer] = optimizer_bytes * buckets_.elements / shard();
    memory[Term::kCommunication] = scratch();
    memory[Term::kBuffers] = buffers();
    return memory;
  }

  // Cosines and sines of positions; tokens and targets of the step.
  double buffers() const {
    constexpr double kTableBytes = 4, kTokenBytes = 8;
    const double positions = static_cast<double>(job_.sequence_length);
    return positions * static_cast<double>(job_.model.head_size) * kTableBytes +
           2 * static_cast<double>(micro_batches_ * layout_.mb) * positions * kTokenBytes;
  }

  double scratch_of(double elements, double element_bytes, double group_size, bool is_scatter) const {
    return reduction_scratch_bytes(job_.engine, elements, element_bytes, group_size, is_scatter);
  }
  // Of each group and kind of call the largest reduction's.
  double scratch() const {
    const OperatorSizes& s = layer_.passes.sizes;
    constexpr double kGradientBytes = 4, kStatisticBytes = 4;
    const double t = static_cast<double>(layout_.tp);
    const double beside_tp = scratch_of(s.whole / s.element, s.element, t, layout_.sp);
    double tp = std::max(beside_tp, scratch_of(buckets_.norm_elements / shard(), kGradientBytes, t, false));
    if (group_.has_head) {
      const double columns = std::max(1.0, s.columns);
      const double rows = std::min(s.tokens, logits_rows(job_.engine, columns));
      tp = std::max(tp, scratch_of(2 * rows, kStatisticBytes, t, false));
    }
    const double dp_bytes = std::max(scratch_of(buckets_.largest, kGradientBytes, dp(), layout_.zero >= 1),
                                     scratch_of(buckets_.largest_direct, kGradientBytes, dp(), layout_.zero >= 1));
    const double replicas = std::max(1.0, t / static_cast<double>(job_.model.num_kv_heads));
    return beside_tp + tp + dp_bytes + scratch_of(buckets_.key_elements / shard(), kGradientBytes, replicas, false) +
           scratch_of(buckets_.table_elements / shard(), kGradientBytes, 2, false);
  }

  // Gradients that are summed over other groups than dp lie together for that, where they are in several places.
  double joint_gradients() const {
    constexpr double kGradientBytes = 4;
    const double norms = layout_.vp > 1 ? buckets_.norm_elements : 0;
    const double keys = group_.num_layers > 1 ? buckets_.key_elements : 0;
    return std::max(norms, keys) / shard() * kGradientBytes;
  }

  const spec::Job& job_;
  const layout::Layout& layout_;
  const StageGroup& group_;
  const LayerActivations& layer_;
  int64_t micro_batches_;
  Buckets buckets_;
  ChunkRuns runs_;
};

}  // namespace

StageMemory stage_of_operators(const spec::Job& job, const layout::Layout& layout, const StageGroup& group,
                               const LayerActivations& layer, int64_t micro_batches) {
  return StageOfOperators(job, layout, group, layer, micro_batches).peak();
}

}  // namespace layline::memory
