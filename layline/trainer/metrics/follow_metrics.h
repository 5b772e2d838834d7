// Reads the file that MetricsWriter writes, as it grows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "layline/trainer/metrics/step_record.h"

namespace layline::trainer::metrics {

class MetricsFollower {
 public:
  // on_row: of each row, in the order of the file. on_restart: what was told before counts no more, since the file was
  // cut short, or is another one.
  MetricsFollower(std::string path, std::function<void(StepRecord)> on_row, std::function<void()> on_restart = {});

  // Tells what has been appended since the last call; a row that is not finished yet waits for the next. Rows that are
  // no metrics are passed over. False when there is no such file. Throws base::InputError when it cannot be read.
  bool poll();

 private:
  void take_lines();

  std::string path_;
  std::function<void(StepRecord)> on_row_;
  std::function<void()> on_restart_;
  uint64_t file_ = 0;  // its inode
  int64_t offset_ = 0;
  std::string unfinished_;
};

}  // namespace layline::trainer::metrics
