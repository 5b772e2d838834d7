#include "layline/spec/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/spec/rope_json.h"

namespace layline::spec {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 40;

// What a family's configuration class in the transformers library means by a key that is not there.
struct Family {
  std::string_view architecture;
  std::string_view model_type;
  int64_t default_kv_heads;  // 0: as many as attention heads
  bool has_qkv_bias;
};

constexpr std::array<Family, 4> kFamilies = {{{"LlamaForCausalLM", "llama", 0, false},
                                              {"MistralForCausalLM", "mistral", 8, false},
                                              {"Qwen2ForCausalLM", "qwen2", 32, true},
                                              {"GPT2LMHeadModel", "gpt2", 0, true}}};

int64_t whole_or(JsonObject& object, const std::string& key, int64_t fallback) {
  return object.has_value(key) ? object.whole(key, 1, kMaxSize) : fallback;
}

bool flag_or(JsonObject& object, const std::string& key, bool fallback) {
  return object.has_value(key) ? object.flag(key) : fallback;
}

double epsilon_or(JsonObject& object, const std::string& key, double fallback) {
  return object.has_value(key) ? object.number(key, 0, 1) : fallback;
}

const Family& family_of(JsonObject& object) {
  const bool has_architectures = object.has_value("architectures");
  std::string found;
  if (has_architectures) {
    const auto names = object.texts("architectures");
    found = names.empty() ? "" : names.front();
  } else {
    found = object.text("model_type");
  }
  for (const Family& family : kFamilies) {
    if (found == (has_architectures ? family.architecture : family.model_type)) return family;
  }
  object.fail(has_architectures ? "architectures" : "model_type",
              fmt::format("\"{}\" is not supported; LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and "
                          "GPT2LMHeadModel are (mixtures of experts are not)",
                          found));
}

// Throws when the activation function, where it is given, is none of `known`.
void check_activation(JsonObject& object, const std::string& key, const std::vector<std::string>& known) {
  if (object.has_value(key)) object.choice(key, known);
}

int64_t head_size_of(JsonObject& object, const char* hidden_key, const char* heads_key, const Model& model) {
  if (model.hidden % model.num_heads != 0) {
    object.fail(hidden_key, fmt::format("{} {} does not divide {}", heads_key, model.num_heads, model.hidden));
  }
  return model.hidden / model.num_heads;
}

Model read_llama_kind(JsonObject& object, const Family& family) {
  Model model;
  model.num_layers = object.whole("num_hidden_layers", 1, kMaxSize);
  model.hidden = object.whole("hidden_size", 1, kMaxSize);
  model.num_heads = object.whole("num_attention_heads", 1, kMaxSize);
  model.ffn_hidden = object.whole("intermediate_size", 1, kMaxSize);
  model.vocab = object.whole("vocab_size", 1, kMaxSize);
  object.require_all();
  const int64_t default_kv_heads = family.default_kv_heads > 0 ? family.default_kv_heads : model.num_heads;
  model.num_kv_heads =
      object.has("num_key_value_heads") ? whole_or(object, "num_key_value_heads", model.num_heads) : default_kv_heads;
  model.head_size = object.has_value("head_dim") ? object.whole("head_dim", 1, kMaxSize)
                                                 : head_size_of(object, "hidden_size", "num_attention_heads", model);
  check_activation(object, "hidden_act", {"silu", "swish"});
  model.tied_embeddings = flag_or(object, "tie_word_embeddings", false);
  const bool attention_bias = flag_or(object, "attention_bias", false);
  model.linear_bias = flag_or(object, "mlp_bias", false);
  if (attention_bias != model.linear_bias) {
    object.fail(attention_bias ? "attention_bias" : "mlp_bias",
                "is true and its counterpart is not: biases are supported on all linear layers or on none");
  }
  model.qkv_bias = family.has_qkv_bias || attention_bias;
  model.norm_epsilon = epsilon_or(object, "rms_norm_eps", 1e-6);
  model.rope = read_huggingface_rope(object);
  return model;
}

Model read_gpt2(JsonObject& object) {
  Model model;
  model.num_layers = object.whole("n_layer", 1, kMaxSize);
  model.hidden = object.whole("n_embd", 1, kMaxSize);
  model.num_heads = object.whole("n_head", 1, kMaxSize);
  model.vocab = object.whole("vocab_size", 1, kMaxSize);
  object.require_all();
  model.num_kv_heads = model.num_heads;
  model.head_size = head_size_of(object, "n_embd", "n_head", model);
  model.ffn_hidden = whole_or(object, "n_inner", 4 * model.hidden);
  model.max_sequence_length = whole_or(object, "n_positions", 1024);
  check_activation(object, "activation_function", {"gelu_new", "gelu", "gelu_fast", "gelu_pytorch_tanh"});
  model.mlp = Mlp::kGelu;
  model.norm = Norm::kLayerNorm;
  model.position = Position::kLearned;
  model.tied_embeddings = flag_or(object, "tie_word_embeddings", true);
  model.qkv_bias = model.linear_bias = true;
  model.norm_epsilon = epsilon_or(object, "layer_norm_epsilon", 1e-5);
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
  const Family& family = family_of(object);
  Model model = family.model_type == "gpt2" ? read_gpt2(object) : read_llama_kind(object, family);
  model.name = name_of_file(where);
  model.title = model.name;
  model.source = where;
  return model;
}

}  // namespace layline::spec
