// The report of any runs: `layline report RUNS.csv…`.
#pragma once

#include <string>
#include <vector>

#include "layline/calibrate/validate.h"
#include "layline/report/figure.h"

namespace layline::report {

struct RunsReportOptions {
  std::string engine = "";  // as in calibrate::ValidateOptions
  std::string cluster = "";
  std::string calibration = "";
  std::string sampling = "";  // a sentence when the tables are a sample of more runs
};

// Throws base::InputError when the tables hold no run at all.
Report runs_report(const std::vector<runs::RunTable>& tables, const RunsReportOptions& options);

}  // namespace layline::report
