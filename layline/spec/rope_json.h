// Rotary position embeddings in JSON. Private to this folder.
#pragma once

#include "layline/spec/json_object.h"
#include "layline/spec/model.h"

namespace layline::spec {

// Layline's own form: {"theta": 500000, "scaling": "llama3", "factor": 8, …}; every key may be left out but
// the numbers of its scaling. "other_scaling" names a kind that can only be planned with.
Rope read_rope(JsonObject object);

// What a config.json says: `rope_theta` and `rope_scaling` (with "rope_type", or "type" as older files have it), or
// `rope_parameters` with both, as transformers 5 writes it. Kinds that are neither "linear" nor "llama3", parameters a
// kind of layer, and rotation of a part of each head are RopeScaling::kOther.
Rope read_huggingface_rope(JsonObject& config);

nlohmann::ordered_json json_of(const Rope& rope);  // what read_rope reads

}  // namespace layline::spec
