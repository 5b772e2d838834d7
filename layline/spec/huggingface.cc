#include "layline/spec/huggingface.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "layline/base/error.h"

namespace layline::spec {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr std::array<std::string_view, 4> kModelTypes = {"llama", "mistral", "qwen2", "gpt2"};

int64_t whole_or(JsonObject& object, const std::string& key, int64_t fallback) {
  return object.has(key) ? object.whole(key, 1, kMaxSize) : fallback;
}

bool flag_or(JsonObject& object, const std::string& key, bool fallback) {
  return object.has(key) ? object.flag(key) : fallback;
}

std::string type_of(JsonObject& object, const std::string& where) {
  static const std::vector<std::pair<std::string, std::string>> kArchitectures = {
      {"LlamaForCausalLM", "llama"}, {"MistralForCausalLM", "mistral"}, {"Qwen2ForCausalLM", "qwen2"},
      {"GPT2LMHeadModel", "gpt2"}};
  std::string found;
  if (object.has("architectures")) {
    const auto names = object.texts("architectures");
    found = names.empty() ? "" : names.front();
    for (const auto& [architecture, type] : kArchitectures) {
      if (architecture == found) return type;
    }
  } else {
    found = object.text("model_type");
    for (const std::string_view type : kModelTypes) {
      if (type == found) return found;
    }
  }
  throw base::InputError(where, fmt::format("architecture \"{}\" is not supported; LlamaForCausalLM, "
                                            "MistralForCausalLM, Qwen2ForCausalLM and GPT2LMHeadModel are",
                                            found));
}

Model read_llama_kind(JsonObject& object, const std::string& type) {
  Model model;
  model.num_layers = object.whole("num_hidden_layers", 1, kMaxSize);
  model.hidden = object.whole("hidden_size", 1, kMaxSize);
  model.num_heads = object.whole("num_attention_heads", 1, kMaxSize);
  model.num_kv_heads = whole_or(object, "num_key_value_heads", model.num_heads);
  const bool has_head_size = object.has("head_dim");
  if (!has_head_size && model.hidden % model.num_heads != 0) {
    object.fail("hidden_size", fmt::format("num_attention_heads {} does not divide {}, and there is no head_dim",
                                           model.num_heads, model.hidden));
  }
  model.head_size = has_head_size ? object.whole("head_dim", 1, kMaxSize) : model.hidden / model.num_heads;
  model.ffn_hidden = object.whole("intermediate_size", 1, kMaxSize);
  model.vocab = object.whole("vocab_size", 1, kMaxSize);
  model.tied_embeddings = flag_or(object, "tie_word_embeddings", false);
  const bool attention_bias = flag_or(object, "attention_bias", false);
  model.qkv_bias = type == "qwen2" || attention_bias;
  model.linear_bias = flag_or(object, "mlp_bias", false);
  return model;
}

Model read_gpt2(JsonObject& object) {
  Model model;
  model.num_layers = object.whole("n_layer", 1, kMaxSize);
  model.hidden = object.whole("n_embd", 1, kMaxSize);
  model.num_heads = object.whole("n_head", 1, kMaxSize);
  if (model.hidden % model.num_heads != 0) {
    object.fail("n_embd", fmt::format("n_head {} does not divide {}", model.num_heads, model.hidden));
  }
  model.num_kv_heads = model.num_heads;
  model.head_size = model.hidden / model.num_heads;
  const bool own_width = object.has("n_inner") && !object.is_null("n_inner");
  model.ffn_hidden = own_width ? object.whole("n_inner", 1, kMaxSize) : 4 * model.hidden;
  model.vocab = object.whole("vocab_size", 1, kMaxSize);
  model.max_sequence_length = whole_or(object, "n_positions", 1024);
  model.mlp = Mlp::kGelu;
  model.norm = Norm::kLayerNorm;
  model.position = Position::kLearned;
  model.tied_embeddings = flag_or(object, "tie_word_embeddings", true);
  model.qkv_bias = model.linear_bias = true;
  return model;
}

// The folder of a config.json names the model best.
std::string name_of_file(const std::string& where) {
  const std::filesystem::path path(where);
  const std::string folder = path.parent_path().filename().string();
  return path.filename() == "config.json" && !folder.empty() ? folder : path.stem().string();
}

}  // namespace

Model read_huggingface_config(JsonObject object, const std::string& where) {
  const std::string type = type_of(object, where);
  Model model = type == "gpt2" ? read_gpt2(object) : read_llama_kind(object, type);
  model.name = name_of_file(where);
  model.title = model.name;
  model.source = where;
  return model;
}

}  // namespace layline::spec
