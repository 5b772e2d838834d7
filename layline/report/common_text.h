// Sentences that every report of runs says.
#pragma once

#include <string>

#include "layline/report/jobs.h"

namespace layline::report {

// Which MFU this is.
std::string mfu_text();

// Which calibrations the predictions come from, by engine and GPU.
std::string calibration_text(const RunList& runs, const std::string& calibration);

}  // namespace layline::report
