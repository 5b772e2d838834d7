// Recommendations and rules of thumb, tried on recorded runs and by price: a section for reports of runs, and the
// report of a study.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "layline/report/figure.h"
#include "layline/report/jobs.h"
#include "layline/study/evidence.h"
#include "layline/study/study.h"

namespace layline::report {

// What runs say of each rule, pair by pair (dataset "pairs"), the exceptions by name, and what the planner says of it
// at each job of `runs` whose engine has a calibration of its own.
Section advice(const study::EvidenceSummary& evidence, const RunList& runs, std::map<std::string, Dataset>& datasets);

// `layline study`: the best layout of every job, each rule at every job, and where it stops being true.
Report study_report(const study::Study& study);

}  // namespace layline::report
