#include "layline/spec/model.h"

#include <fmt/format.h>

#include "layline/base/error.h"

namespace layline::spec {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr double kMaxProduct = 1099511627776.0;  // 2^40
constexpr double kMaxParameters = 1024.0 * kMaxProduct;

int64_t norm_parameters(const Model& model) { return model.hidden * (model.norm == Norm::kLayerNorm ? 2 : 1); }

void check_sizes(const Model& model, const std::string& where) {
  const std::pair<const char*, int64_t> sizes[] = {{"num_layers", model.num_layers},
                                                   {"hidden", model.hidden},
                                                   {"num_heads", model.num_heads},
                                                   {"num_kv_heads", model.num_kv_heads},
                                                   {"head_size", model.head_size},
                                                   {"ffn_hidden", model.ffn_hidden},
                                                   {"vocab", model.vocab}};
  for (const auto& [name, size] : sizes) {
    if (size < 1 || size > kMaxSize) {
      throw base::InputError(where, fmt::format("{} is {}, want 1 to {}", name, size, kMaxSize));
    }
  }
  if (model.position == Position::kLearned && model.max_sequence_length < 1) {
    throw base::InputError(where, "max_sequence_length is 0, but learned positions need a row for each token");
  }
  if (model.max_sequence_length < 0) throw base::InputError(where, "max_sequence_length is negative");
}

}  // namespace

int64_t Model::layer_parameters() const {
  const int64_t query = attention_width();
  const int64_t kv = kv_width();
  int64_t parameters =
      hidden * (2 * query + 2 * kv) + num_mlp_matrices() * hidden * ffn_hidden + 2 * norm_parameters(*this);
  if (qkv_bias) parameters += query + 2 * kv;
  if (linear_bias) parameters += 2 * hidden + (num_mlp_matrices() - 1) * ffn_hidden;
  return parameters;
}

int64_t Model::embedding_parameters() const {
  return vocab * hidden + (position == Position::kLearned ? max_sequence_length * hidden : 0);
}

int64_t Model::head_parameters() const { return tied_embeddings ? 0 : vocab * hidden; }

int64_t Model::final_norm_parameters() const { return norm_parameters(*this); }

int64_t Model::num_parameters() const {
  return num_layers * layer_parameters() + embedding_parameters() + head_parameters() + final_norm_parameters();
}

double Model::flops_per_token(int64_t sequence_length) const {
  return 6.0 * static_cast<double>(num_parameters()) + 12.0 * static_cast<double>(num_layers) *
                                                           static_cast<double>(attention_width()) *
                                                           static_cast<double>(sequence_length);
}

void check_model(const Model& model, const std::string& where) {
  check_sizes(model, where);
  if (model.num_heads % model.num_kv_heads != 0) {
    throw base::InputError(
        where, fmt::format("num_kv_heads {} does not divide num_heads {}", model.num_kv_heads, model.num_heads));
  }
  if (model.num_experts > 0) {
    throw base::InputError(where, "mixtures of experts are not supported yet; only dense models are");
  }
  // In doubles: the products below are what must not overflow.
  const double hidden = static_cast<double>(model.hidden);
  const double width = static_cast<double>(model.num_heads) * static_cast<double>(model.head_size);
  for (const double rows : {static_cast<double>(model.vocab), static_cast<double>(model.ffn_hidden), width,
                            static_cast<double>(model.max_sequence_length)}) {
    if (rows * hidden > kMaxProduct) throw base::InputError(where, "a matrix has more than 2^40 elements");
  }
  // At most ten matrices of 2^40 elements a layer: a layer's count is below 2^44 and cannot overflow.
  if (static_cast<double>(model.num_layers) * static_cast<double>(model.layer_parameters()) > kMaxParameters) {
    throw base::InputError(where, "the model has more than 2^50 parameters");
  }
}

}  // namespace layline::spec
