// From a RUN.json and its layout to what a rank works on.
#pragma once

#include "layline/trainer/config/resolve_layout.h"
#include "layline/trainer/config/run_config.h"
#include "layline/trainer/data/data_set.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::loop {

// The stages are the split that was priced.
TrainingJob training_job(const config::RunConfig& config, const config::ResolvedLayout& resolved);

// Throw base::InputError for data that is not there, damaged, or too short for one sample.
data::DataSet open_training_data(const config::RunConfig& config);
data::DataSet open_validation_data(const config::RunConfig& config);  // in its order

}  // namespace layline::trainer::loop
