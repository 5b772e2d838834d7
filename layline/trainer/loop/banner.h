// What a run says of itself before its first step, and how far off the planner was after a few.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/trainer/config/resolve_layout.h"
#include "layline/trainer/config/run_config.h"
#include "layline/trainer/loop/rank_trainer.h"

namespace layline::trainer::loop {

// Model, layout, mesh, stage split, data, optimizer and prediction: a line each.
std::string banner(const config::RunConfig& config, const config::ResolvedLayout& resolved,
                   const config::Prediction& prediction, const TrainingJob& job, int64_t num_samples);

// Predicted and measured step time and bytes by stage, a line each.
std::vector<std::string> compare_with_prediction(const config::Prediction& prediction, double step_seconds,
                                                 const std::vector<int64_t>& peak_bytes_by_stage);

}  // namespace layline::trainer::loop
