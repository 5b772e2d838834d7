// A model from a JSON object, on its own or inside another file. For sources only: it shows the JSON library.
#pragma once

#include <string>

#include "layline/spec/json_object.h"
#include "layline/spec/model.h"

namespace layline::spec {

// Of Layline's own keys, or of a Hugging Face config.json, which is then named after the file `where`. Throws
// base::InputError as parse_model does, with the object's path.
Model read_model(JsonObject object, const std::string& where);

}  // namespace layline::spec
