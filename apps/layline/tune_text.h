// What `layline tune` says of real runs: while it goes on, and at its end.
#pragma once

#include <string>

#include "layline/sweep/tune.h"

namespace layline::app {

std::string tune_head(const sweep::TuneState& state);   // before the first trial
std::string trial_line(const sweep::TuneState& state);  // of the trial that was made last
// For the progress line: the best so far, how sure that is, and what runs now.
std::string tune_remark(const sweep::TuneState& state, const sweep::PlannedRun& next);

// run_json: the run to train with, "" when no layout ran.
std::string tune_summary(const sweep::TuneState& state, const sweep::TuneRequest& request, const std::string& run_json);
std::string tune_json(const sweep::TuneState& state, const sweep::TuneRequest& request, const std::string& run_json);

}  // namespace layline::app
