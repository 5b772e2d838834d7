// A calibration as a JSON object: a file of its own, or inside a cluster.
#pragma once

#include "layline/spec/calibration.h"
#include "layline/spec/json_object.h"

namespace layline::spec {

// Throws base::InputError.
Calibration read_calibration(JsonObject object);

nlohmann::ordered_json json_of(const Calibration& calibration);

}  // namespace layline::spec
