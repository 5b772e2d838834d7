#include "layline/memory/parameters.h"

#include <algorithm>
#include <cmath>

namespace layline::memory {
namespace {

double norm_parameters(const spec::Model& model) {
  return static_cast<double>(model.hidden) * (model.norm == spec::Norm::kLayerNorm ? 2 : 1);
}

}  // namespace

double padded_vocab(const spec::Model& model, int64_t tp) {
  const int64_t rows_per_rank = (model.vocab + tp - 1) / tp;
  return static_cast<double>(rows_per_rank * tp);
}

double kv_width_per_rank(const spec::Model& model, int64_t tp) {
  const int64_t heads = std::max<int64_t>(1, model.num_kv_heads / tp);
  return static_cast<double>(heads * model.head_size);
}

double layer_parameters_per_rank(const spec::Model& model, int64_t tp) {
  const double h = static_cast<double>(model.hidden);
  const double t = static_cast<double>(tp);
  const double query = static_cast<double>(model.attention_width()) / t;
  const double kv = kv_width_per_rank(model, tp);
  const double ffn = static_cast<double>(model.ffn_hidden) / t;
  const double up_matrices = static_cast<double>(model.num_mlp_matrices() - 1);
  double parameters = h * (2 * query + 2 * kv) + h * ffn * (up_matrices + 1) + 2 * norm_parameters(model);
  if (model.qkv_bias) parameters += query + 2 * kv;
  if (model.linear_bias) parameters += 2 * h + up_matrices * ffn;
  return parameters;
}

double embedding_parameters_per_rank(const spec::Model& model, int64_t tp) {
  const double h = static_cast<double>(model.hidden);
  const double positions =
      model.position == spec::Position::kLearned ? static_cast<double>(model.max_sequence_length) : 0;
  return padded_vocab(model, tp) / static_cast<double>(tp) * h + positions * h;
}

double head_parameters_per_rank(const spec::Model& model, int64_t tp) {
  return padded_vocab(model, tp) / static_cast<double>(tp) * static_cast<double>(model.hidden);
}

double stage_parameters(const spec::Model& model, int64_t tp, const StageGroup& group) {
  double parameters = static_cast<double>(group.num_layers) * layer_parameters_per_rank(model, tp);
  if (group.has_embedding) parameters += embedding_parameters_per_rank(model, tp);
  const bool own_head = !(model.tied_embeddings && group.has_embedding);
  if (group.has_head) parameters += norm_parameters(model) + (own_head ? head_parameters_per_rank(model, tp) : 0);
  return parameters;
}

}  // namespace layline::memory
