// The "measured" object of a cluster file.
#pragma once

#include "layline/spec/json_object.h"
#include "layline/spec/measurements.h"

namespace layline::spec {

// Throws base::InputError.
Measurements read_measurements(JsonObject object);

nlohmann::ordered_json json_of(const Measurements& measurements);

}  // namespace layline::spec
