// Run records with the job and layout that each one ran, as fitting and predicting take them. Private to this folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layline/calibrate/fit.h"
#include "layline/calibrate/validate.h"

namespace layline::calibrate {

// A record with all that is known of it.
struct Entry {
  const runs::RunRecord* record = nullptr;
  std::string sweep;
  std::string key;  // engine and GPU family: whose calibration it shares
  std::shared_ptr<spec::Job> job;
  layout::Layout layout;
  std::string reason;   // why it is not scored
  bool priced = false;  // legal and complete
};

// Why the record counts in no score; empty when it does.
std::string score_reason(const runs::RunRecord& record);

struct EntryOptions {
  std::string engine = "";          // replaces the engine column when not empty
  std::string default_engine = "";  // of rows without one; may be empty
  std::string cluster = "";         // name or file, of the rows whose hardware column names it; may be empty
};

// One a record, in the order of the tables. Throws base::InputError when there is no such cluster, or no run on it.
std::vector<Entry> entries_of(const std::vector<runs::RunTable>& tables, const EntryOptions& options);

Observation observation_of(const Entry& entry, const std::string& group);

bool learns_from(const Entry& entry);

// The sweep or the model.
std::string group_of(const Entry& entry, LeaveOut leave_out);

Fit fit_of(const spec::Calibration& calibration);

// The shipped calibration of these runs when it was fitted to none of them.
std::optional<spec::Calibration> shipped_without(const std::vector<size_t>& members, const std::vector<Entry>& entries,
                                                 LeaveOut leave_out);

}  // namespace layline::calibrate
