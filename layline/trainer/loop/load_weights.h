// Weights from Hugging Face files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layline/spec/model.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::data {
class SafetensorsFolder;
}

namespace layline::trainer::loop {

// Of the whole model: global names and shapes.
std::map<std::string, std::vector<int64_t>> weights_of(const spec::Model& model);

// Throws base::InputError when a weight of the model is missing or has another shape (name, found, wanted), or the
// files hold weights that the model does not have. A head that repeats a tied embedding is accepted.
void check_fits(const data::SafetensorsFolder& folder, const spec::Model& model);

// This rank's slice, in the parameter's dtype; padding is zero. The file has been checked.
void load_weights(const data::SafetensorsFolder& folder, model::Parameter& parameter);

}  // namespace layline::trainer::loop
