// What a run asks for against what there is: this build, and the files that it names. So that mistakes are said before
// any rank is started.
#pragma once

#include "layline/trainer/config/run_config.h"

namespace layline::trainer::config {

// Throws base::InputError for what this build does not do: devices, checkpoints, tokenizers, models that are not of
// the Llama kind.
void check_build(const RunConfig& config);

// Throws base::InputError for data or weights that are not there, and for output in folders that are not there.
void check_files(const RunConfig& config);

// Both.
void check_run(const RunConfig& config);

// Whether the source is the prefix of an existing .bin and .idx; otherwise it is a text file. A file of the very name
// comes first. Throws base::InputError when neither is there; `what` names the source: "$.data.train".
bool is_indexed(const DataSource& source, const std::string& what);

}  // namespace layline::trainer::config
