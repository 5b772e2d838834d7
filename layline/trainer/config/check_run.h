// What a run asks for against what there is: this build, and the files that it names. So that mistakes are said before
// any rank is started.
#pragma once

#include "layline/trainer/config/run_config.h"

namespace layline::trainer::config {

// Throws base::InputError for what this build does not do: devices, checkpoints, tokenizers, models that are not of
// the Llama kind.
void check_build(const RunConfig& config);

// Throws base::InputError for data or weights that are not there or damaged, data shorter than a sample or with tokens
// beyond the vocabulary (formats::check_vocabulary_of_start), and for output that cannot be written or would be
// appended to input.
void check_files(const RunConfig& config);

// Throws base::InputError when the run does not resume and its directory has checkpoints, which are another run's.
void check_checkpoints_are_own(const RunConfig& config);

// Both.
void check_run(const RunConfig& config);

}  // namespace layline::trainer::config
