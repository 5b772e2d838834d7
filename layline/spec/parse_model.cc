// Models from JSON: Layline's own files.

#include <array>

#include "layline/spec/huggingface.h"
#include "layline/spec/json_object.h"
#include "layline/spec/read_model.h"
#include "layline/spec/registry.h"
#include "layline/spec/rope_json.h"

namespace layline::spec {
namespace {

constexpr std::array<std::string_view, 3> kMlpNames = {"swiglu", "gelu", "squared-relu"};
constexpr std::array<std::string_view, 2> kNormTypeNames = {"rmsnorm", "layernorm"};
constexpr std::array<std::string_view, 3> kPositionNames = {"rope", "learned", "alibi"};
constexpr int64_t kMaxSize = int64_t{1} << 40;

Model read_own_model(JsonObject object) {
  Model model;
  model.name = object.name("name");
  model.title = object.text("title");
  if (object.has("aliases")) model.aliases = object.texts("aliases");
  model.num_layers = object.whole("num_layers", 1, kMaxSize);
  model.hidden = object.whole("hidden", 1, kMaxSize);
  model.num_heads = object.whole("num_heads", 1, kMaxSize);
  model.num_kv_heads = object.whole("num_kv_heads", 1, kMaxSize);
  model.head_size = object.whole("head_size", 1, kMaxSize);
  model.ffn_hidden = object.whole("ffn_hidden", 1, kMaxSize);
  model.vocab = object.whole("vocab", 1, kMaxSize);
  model.max_sequence_length = object.whole("max_sequence_length", 0, kMaxSize);
  model.mlp = static_cast<Mlp>(object.choice("mlp", kMlpNames));
  model.norm = static_cast<Norm>(object.choice("norm", kNormTypeNames));
  model.position = static_cast<Position>(object.choice("position", kPositionNames));
  if (object.has("norm_epsilon")) model.norm_epsilon = object.number("norm_epsilon", 0, 1);
  if (object.has("rope")) {
    if (model.position != Position::kRope) object.fail("rope", "is there, but position is not rope");
    model.rope = read_rope(object.object("rope"));
  }
  model.tied_embeddings = object.flag("tied_embeddings");
  model.qkv_bias = object.flag("qkv_bias");
  model.linear_bias = object.flag("linear_bias");
  model.num_experts = object.whole("num_experts", 0, 100000);
  model.published_parameters = object.whole("published_parameters", 0, kMaxSize * 1024);
  model.source = object.text("source");
  object.finish();
  return model;
}

}  // namespace

Model read_model(JsonObject object, const std::string& where) {
  const bool from_hub = object.has("architectures") || object.has("model_type");
  Model model = from_hub ? read_huggingface_config(object, where) : read_own_model(object);
  check_model(model, where);
  return model;
}

Model parse_model(std::string_view json, const std::string& where) {
  const nlohmann::json value = parse_strict_json(json, where);
  return read_model(JsonObject(value, where), where);
}

std::string to_json(const Model& model) {
  nlohmann::ordered_json json;
  json["name"] = model.name;
  json["title"] = model.title;
  if (!model.aliases.empty()) json["aliases"] = model.aliases;
  json["num_layers"] = model.num_layers;
  json["hidden"] = model.hidden;
  json["num_heads"] = model.num_heads;
  json["num_kv_heads"] = model.num_kv_heads;
  json["head_size"] = model.head_size;
  json["ffn_hidden"] = model.ffn_hidden;
  json["vocab"] = model.vocab;
  json["max_sequence_length"] = model.max_sequence_length;
  json["mlp"] = kMlpNames[static_cast<size_t>(model.mlp)];
  json["norm"] = kNormTypeNames[static_cast<size_t>(model.norm)];
  json["position"] = kPositionNames[static_cast<size_t>(model.position)];
  json["norm_epsilon"] = model.norm_epsilon;
  if (model.position == Position::kRope) json["rope"] = json_of(model.rope);
  json["tied_embeddings"] = model.tied_embeddings;
  json["qkv_bias"] = model.qkv_bias;
  json["linear_bias"] = model.linear_bias;
  json["num_experts"] = model.num_experts;
  json["published_parameters"] = model.published_parameters;
  json["source"] = model.source;
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::spec
