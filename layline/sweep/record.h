// Measured runs as run records, and back: what a file of records says has been measured already.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/runs/run_record.h"
#include "layline/sweep/measure.h"
#include "layline/sweep/planned_run.h"

namespace layline::sweep {

// What must be the same for two records to stand in one file of a sweep. Written to the notes of each.
struct Origin {
  std::string sweep;    // its name
  std::string machine;  // the processor, its cores
  std::string run;      // fingerprint of everything of the run but its layout and its limits of time
};

// Everything that decides what a step of the run costs, as 16 hexadecimal digits.
std::string fingerprint(const trainer::config::RunConfig& run);

runs::RunRecord record_of(const PlannedRun& planned, const Measurement& measured, const Origin& origin);

// What key_of(PlannedRun) was for the run that the record is of; "" when it is of no sweep.
std::string key_of(const runs::RunRecord& record);

// Throws base::InputError when the record (of `file`) is of another sweep, another run or another machine.
void check_origin(const runs::RunRecord& record, const Origin& origin, const std::string& file);

}  // namespace layline::sweep
