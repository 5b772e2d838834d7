#include "layline/memory/activations.h"

#include "layline/memory/parameters.h"

namespace layline::memory {
namespace {

double score_bytes(const spec::Engine& engine, layout::AttentionKernel kernel) {
  switch (kernel) {
    case layout::AttentionKernel::kUnfused:
      return engine.unfused_score_bytes;
    case layout::AttentionKernel::kFusedSoftmax:
      return engine.fused_softmax_score_bytes;
    default:
      return 0;
  }
}

}  // namespace

LayerShape layer_shape(const layout::Layout& layout, int64_t gpus_per_node) {
  const bool across = layout.pp > 1 && layout.world_size() > gpus_per_node;
  return {layout.mb, layout.tp, layout.cp, layout.sp, layout.checkpointing, layout.attention, layout.norm, across};
}

LayerActivations layer_activations(const spec::Job& job, const spec::Coefficients& k, const LayerShape& shape) {
  const spec::Engine& engine = job.engine;
  const double t = static_cast<double>(shape.tp);
  const double hidden_share = shape.sp ? t : 1;
  const double h = static_cast<double>(job.model.hidden);
  const double tokens =
      static_cast<double>(shape.mb) * static_cast<double>(job.sequence_length) / static_cast<double>(shape.cp);
  const bool unfused_norm = shape.norm == layout::NormKernel::kUnfused;
  const bool has_dropout = job.model.norm == spec::Norm::kLayerNorm;
  const double hidden_bytes = engine.hidden_activation_bytes + (has_dropout ? engine.dropout_activation_bytes : 0) +
                              (unfused_norm ? engine.unfused_norm_activation_bytes : 0);
  const double ffn_bytes =
      job.model.num_mlp_matrices() == 3 ? engine.ffn_activation_bytes : engine.plain_ffn_activation_bytes;
  const double inner = (engine.attention_activation_bytes * static_cast<double>(job.model.attention_width()) +
                        ffn_bytes * static_cast<double>(job.model.ffn_hidden)) /
                           t +
                       engine.kv_activation_bytes * 2 * kv_width_per_rank(job.model, shape.tp);
  LayerActivations result;
  result.scores_bytes = tokens * score_bytes(engine, shape.attention) * static_cast<double>(job.model.num_heads) / t *
                        static_cast<double>(job.sequence_length) * k.score_activation_scale;
  const double hidden = tokens * h * hidden_bytes / hidden_share * k.hidden_activation_scale;
  result.plain_bytes = hidden + tokens * inner * k.inner_activation_scale + result.scores_bytes;
  constexpr double kGatheredBytes = 4;  // the inputs of QKV and of the feed-forward, 16 bit
  if (shape.sp) result.gathered_bytes = tokens * h * kGatheredBytes;
  const double checkpoint_share = shape.sp && engine.checkpoint_shards_with_sp ? t : 1;
  result.checkpointed_bytes = tokens * h * engine.checkpoint_bytes / checkpoint_share;
  if (engine.working_set == spec::WorkingSet::kOperators) {
    result.passes = layer_passes(job, shape);
    result.final_norm = final_norm_pass(result.passes.sizes, shape);
  }
  result.kept_bytes = result.plain_bytes;
  if (shape.checkpointing == layout::Checkpointing::kFull) result.kept_bytes = result.checkpointed_bytes;
  if (shape.checkpointing == layout::Checkpointing::kSelective) {
    result.kept_bytes -= result.scores_bytes;
    if (engine.selective_recomputes_norms) {
      result.kept_bytes -= tokens * h * 4 / hidden_share * k.hidden_activation_scale;
    }
  }
  return result;
}

}  // namespace layline::memory
