// Models from a Hugging Face config.json. Private to this folder.
#pragma once

#include <string>

#include "layline/spec/json_object.h"
#include "layline/spec/model.h"

namespace layline::spec {

// Sizes, norm epsilon and rotary embedding of a LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM or
// GPT2LMHeadModel, with that family's defaults for what the file leaves out; other keys are ignored. Other
// architectures are a base::InputError that names these four.
Model read_huggingface_config(JsonObject object, const std::string& where);

}  // namespace layline::spec
