// Predicts every run of some tables and scores the predictions, with the calibrations given or refitted without what is
// being scored.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "layline/calibrate/predict.h"
#include "layline/calibrate/score.h"
#include "layline/runs/run_record.h"
#include "layline/spec/calibration.h"

namespace layline::calibrate {

// kSweep, kModel: what is scored is predicted by a fit to all other runs of its engine and GPU family that are given;
// by the shipped calibration where that was fitted to nothing of it, whatever the sweep is called.
enum class LeaveOut { kNone, kSweep, kModel };

struct ValidateOptions {
  LeaveOut leave_out = LeaveOut::kNone;
  std::string engine = "";       // replaces the engine column when not empty
  std::string cluster = "";      // name or file, of the runs whose hardware column names it
  std::string calibration = "";  // name or file for all runs; "none"; "" = the shipped one of each
  std::function<void(size_t done, size_t total)> progress = {};  // fits done; may be empty
};

struct ValidatedRun {
  const runs::RunRecord* record = nullptr;
  std::string sweep;
  Prediction prediction;
  bool scored = false;
  std::string reason;  // why it is not scored, or predicted illegal; else empty
};

struct Validation {
  std::vector<ValidatedRun> runs;  // in the order of the tables
  Scores overall;
  std::map<std::string, Scores> sweeps;
};

Validation validate(const std::vector<runs::RunTable>& tables, const ValidateOptions& options);

struct CalibrateOptions {
  std::string engine = "";   // name, alias or file: learn from the runs whose engine column says so, or is empty
  std::string cluster = "";  // as ValidateOptions has it
  std::string gpu = "";      // and from those on this GPU's family; "": the family of the first such run
  LeaveOut leave_out = LeaveOut::kSweep;
  std::function<void(size_t done, size_t total)> progress = {};
};

// A calibration from all scored runs of the tables, with the error of each sweep (or model) left out. Throws
// base::InputError when no run can be used.
spec::Calibration calibrate(const std::vector<runs::RunTable>& tables, const CalibrateOptions& options);

}  // namespace layline::calibrate
