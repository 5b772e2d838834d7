// What `layline sweep` says: while it goes on, and at its end.
#pragma once

#include <string>

#include "layline/sweep/run_sweep.h"

namespace layline::app {

std::string sweep_head(const sweep::SweepState& state);  // before the first run
std::string run_line(const sweep::SweepState& state);    // of the run that was done last
// For the progress line: the best so far and what runs now.
std::string sweep_remark(const sweep::SweepState& state, const sweep::PlannedRun& next);

std::string sweep_summary(const sweep::SweepState& state, const std::string& output);
std::string sweep_json(const sweep::SweepState& state);

}  // namespace layline::app
