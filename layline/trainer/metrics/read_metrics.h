// Reads the file that MetricsWriter writes, also while it is being written.
#pragma once

#include <string>
#include <vector>

#include "layline/trainer/metrics/step_record.h"

namespace layline::trainer::metrics {

// The rows by step, of a step that was done again the last one. A row that is not finished yet is left out, and so are
// rows that are no metrics. Empty when there is no such file. Keys that a row lacks stay as in StepRecord.
std::vector<StepRecord> read_metrics(const std::string& path);

}  // namespace layline::trainer::metrics
