// What a checkpoint's manifest says of the run that wrote it, as far as other formats need it.
#pragma once

#include <map>
#include <string>

#include "layline/spec/model.h"
#include "layline/trainer/checkpoint/manifest.h"

namespace layline::trainer::convert {

// Of a config.json, beyond the model's sizes.
struct ConfigExtras {
  int64_t max_position_embeddings = 0;       // 0: not known
  std::map<std::string, int64_t> token_ids;  // bos_token_id and the like
};

struct RunOf {
  spec::Model model;
  ConfigExtras extras;
};

// Throws base::InputError naming `folder`.
RunOf run_of(const checkpoint::Manifest& manifest, const std::string& folder);

// Manifest::run of an imported model. from: the folder that it came from.
std::string imported_run(const spec::Model& model, const ConfigExtras& extras, const std::string& from);

// config.json for transformers' LlamaForCausalLM. torch_type: "bfloat16".
std::string llama_config(const spec::Model& model, const ConfigExtras& extras, const std::string& torch_type);
// The extras of such a file, which has been read as a model already.
ConfigExtras extras_of(const std::string& config_text);

}  // namespace layline::trainer::convert
