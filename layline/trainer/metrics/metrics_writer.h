// Metrics as JSON Lines: one object a step, appended, so that a reader can follow and a resumed run goes on in the same
// file. Steps that were done again appear again; the last row of a step counts.
#pragma once

#include <string>

#include "layline/trainer/metrics/step_record.h"

namespace layline::trainer::metrics {

// The row without its line end. Numbers that are not finite, an unknown MFU, are null; validation_loss is there only
// where it was measured.
std::string to_json_line(const StepRecord& record);

class MetricsWriter {
 public:
  // Opens or creates the file. A row that a crash left unfinished at its end is cut off. Throws base::InputError when
  // it cannot be written, or another process has it open here.
  explicit MetricsWriter(std::string path);
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;
  ~MetricsWriter();

  // One write to the end of the file; it has left this process when it returns. Throws base::RunError.
  void write(const StepRecord& record);

 private:
  std::string path_;
  int file_descriptor_ = -1;
};

}  // namespace layline::trainer::metrics
