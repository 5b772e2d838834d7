#include "layline/trainer/convert/run_of.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "layline/base/error.h"
#include "layline/spec/registry.h"

namespace layline::trainer::convert {
namespace {

using nlohmann::ordered_json;

constexpr std::array kTokenIds = {"bos_token_id", "eos_token_id", "pad_token_id"};
constexpr const char* kPositions = "max_position_embeddings";

ordered_json rope_scaling(const spec::Rope& rope) {
  switch (rope.scaling) {
    case spec::RopeScaling::kLinear:
      return {{"rope_type", "linear"}, {"factor", rope.factor}};
    case spec::RopeScaling::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", rope.factor},
              {"low_freq_factor", rope.low_freq_factor},
              {"high_freq_factor", rope.high_freq_factor},
              {"original_max_position_embeddings", rope.original_max_position_embeddings}};
    case spec::RopeScaling::kNone:
    case spec::RopeScaling::kOther:
      break;
  }
  return nullptr;
}

ConfigExtras extras_from(const ordered_json& json) {
  ConfigExtras extras;
  if (json.contains(kPositions) && json.at(kPositions).is_number_integer()) {
    extras.max_position_embeddings = json.at(kPositions).get<int64_t>();
  }
  for (const char* name : kTokenIds) {
    if (!json.contains(name)) continue;
    const ordered_json& id = json.at(name);
    if (id.is_number_integer()) extras.token_ids[name] = id.get<int64_t>();
  }
  return extras;
}

}  // namespace

RunOf run_of(const checkpoint::Manifest& manifest, const std::string& folder) {
  const ordered_json run = ordered_json::parse(manifest.run, nullptr, false);
  if (!run.is_object() || !run.contains("model")) throw base::InputError(folder, "does not say of which model it is");
  RunOf result;
  result.model = spec::parse_model(run.at("model").dump(), folder + ", model");
  if (run.contains("import")) result.extras = extras_from(run.at("import"));
  if (result.extras.max_position_embeddings == 0) {
    result.extras.max_position_embeddings = run.value("sequence_length", int64_t{0});
  }
  return result;
}

std::string imported_run(const spec::Model& model, const ConfigExtras& extras, const std::string& from) {
  ordered_json import = {{"from", from}};
  if (extras.max_position_embeddings > 0) import[kPositions] = extras.max_position_embeddings;
  for (const auto& [name, id] : extras.token_ids) import[name] = id;
  const ordered_json run = {{"model", ordered_json::parse(spec::to_json(model))}, {"import", import}};
  return run.dump();
}

std::string llama_config(const spec::Model& model, const ConfigExtras& extras, const std::string& torch_type) {
  constexpr int64_t kDefaultPositions = 2048;  // of LlamaConfig
  ordered_json json = {{"architectures", {"LlamaForCausalLM"}},
                       {"model_type", "llama"},
                       {"hidden_size", model.hidden},
                       {"intermediate_size", model.ffn_hidden},
                       {"num_hidden_layers", model.num_layers},
                       {"num_attention_heads", model.num_heads},
                       {"num_key_value_heads", model.num_kv_heads},
                       {"head_dim", model.head_size},
                       {"vocab_size", model.vocab},
                       {"hidden_act", "silu"},
                       {"rms_norm_eps", model.norm_epsilon},
                       {"rope_theta", model.rope.theta},
                       {"rope_scaling", rope_scaling(model.rope)},
                       {"attention_bias", false},
                       {"mlp_bias", false},
                       {"tie_word_embeddings", model.tied_embeddings},
                       {"torch_dtype", torch_type},
                       {"use_cache", true}};
  json[kPositions] = extras.max_position_embeddings > 0 ? extras.max_position_embeddings : kDefaultPositions;
  for (const auto& [name, id] : extras.token_ids) json[name] = id;
  return json.dump(2) + "\n";
}

ConfigExtras extras_of(const std::string& config_text) { return extras_from(ordered_json::parse(config_text)); }

}  // namespace layline::trainer::convert
