// Model, batch and training as Megatron-LM's arguments, which Megatron-DeepSpeed shares for the most part. Private to
// this folder.
#pragma once

#include <string>
#include <vector>

#include "layline/export/writers.h"

namespace layline::exporting {

// Lines of "--option value …".
using Arguments = std::vector<std::string>;

Arguments model_arguments(Framework framework, const Plan& plan);
Arguments batch_arguments(const Plan& plan);

}  // namespace layline::exporting
