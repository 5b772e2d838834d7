// From a checkpoint to a rank's state, whichever layout wrote it.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "layline/trainer/checkpoint/reader.h"
#include "layline/trainer/config/run_config.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::loop {

// Of the whole model, by name.
std::vector<checkpoint::SavedParameter> saved_parameters(const spec::Model& model);

// Throws base::InputError when the run cannot go on from the checkpoint: another model (the first weight that differs),
// another precision or sequence length.
void check_resumable(const checkpoint::CheckpointReader& reader, const config::RunConfig& config,
                     const std::vector<checkpoint::SavedParameter>& parameters, at::ScalarType dtype);

// Settings of the run that wrote it which this run has otherwise and which change what is computed: a line for each.
std::vector<std::string> differences(const checkpoint::Manifest& manifest, const config::RunConfig& config);

// Fills what this rank keeps, and makes the weights of all ranks follow. Every rank calls it. Throws base::InputError
// for damage.
void load_state(const checkpoint::CheckpointReader& reader, RankTrainer& trainer, int64_t steps_done);

}  // namespace layline::trainer::loop
