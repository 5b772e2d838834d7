#include "layline/trainer/checkpoint/model_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "layline/base/error.h"

namespace layline::trainer::checkpoint {

namespace {

using formats::TensorShape;
using formats::TensorType;

constexpr const char* kHead = "lm_head.weight";
constexpr const char* kEmbedding = "model.embed_tokens.weight";
// Follows from the configuration.
constexpr std::string_view kRotaryBuffer = "rotary_emb.inv_freq";

bool is_floating(TensorType type) {
  constexpr std::array kTypes = {TensorType::kF64, TensorType::kF32,    TensorType::kBf16,
                                 TensorType::kF16, TensorType::kF8E4M3, TensorType::kF8E5M2};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

}  // namespace

std::map<std::string, ModelWeight> model_weights(const spec::Model& model) {
  std::map<std::string, ModelWeight> weights;
  const ModelWeight norm{{model.hidden}, -1};
  for (int64_t layer = 0; layer < model.num_layers; ++layer) {
    const auto put = [&](const char* part, const ModelWeight& weight) {
      weights[fmt::format("model.layers.{}.{}.weight", layer, part)] = weight;
    };
    put("input_layernorm", norm);
    put("self_attn.q_proj", {{model.attention_width(), model.hidden}, 0});
    put("self_attn.k_proj", {{model.kv_width(), model.hidden}, 0});
    put("self_attn.v_proj", {{model.kv_width(), model.hidden}, 0});
    put("self_attn.o_proj", {{model.hidden, model.attention_width()}, 1});
    put("post_attention_layernorm", norm);
    put("mlp.gate_proj", {{model.ffn_hidden, model.hidden}, 0});
    put("mlp.up_proj", {{model.ffn_hidden, model.hidden}, 0});
    put("mlp.down_proj", {{model.hidden, model.ffn_hidden}, 1});
  }
  weights[kEmbedding] = {{model.vocab, model.hidden}, 0};
  weights["model.norm.weight"] = norm;
  if (!model.tied_embeddings) weights[kHead] = {{model.vocab, model.hidden}, 0};
  return weights;
}

void check_fits(const std::map<std::string, TensorShape>& found, const std::string& path, const spec::Model& model) {
  const std::map<std::string, ModelWeight> wanted = model_weights(model);
  const auto refuse = [&](const std::string& what) { throw base::InputError(path, what); };
  for (const auto& [name, weight] : wanted) {
    const auto has = found.find(name);
    if (has == found.end()) {
      std::vector<std::string> names;
      for (const auto& entry : found) names.push_back(entry.first);
      const std::string nearest = base::nearest_name(name, names);
      refuse(fmt::format("has no weight \"{}\" of model {}{}", name, model.name,
                         nearest.empty() ? "" : " (the nearest is " + nearest + ")"));
    }
    if (has->second.shape != weight.shape) {
      refuse(fmt::format("weight \"{}\" is {}; model {} has {}", name, fmt::join(has->second.shape, " x "), model.name,
                         fmt::join(weight.shape, " x ")));
    }
    if (!is_floating(has->second.type)) {
      refuse(fmt::format("weight \"{}\" has numbers of type {}; want floating-point ones", name,
                         formats::name_of(has->second.type)));
    }
  }
  for (const auto& [name, tensor] : found) {
    if (wanted.count(name) != 0 || name.find(kRotaryBuffer) != std::string::npos) continue;
    if (model.tied_embeddings && name == kHead && tensor.shape == wanted.at(kEmbedding).shape) continue;
    refuse(fmt::format("has a weight \"{}\" that model {} does not have", name, model.name));
  }
}

}  // namespace layline::trainer::checkpoint
