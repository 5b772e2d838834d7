// What `layline watch` shows of a run: where it is, its loss, its speed and its memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layline/base/text_table.h"
#include "layline/trainer/metrics/step_record.h"

namespace layline::app {

// What is kept of a run that is followed: of each step what is drawn, and all of the last one.
class WatchedRun {
 public:
  // Steps that are done again replace what was there, and so does a new run that begins at step 1.
  void add(trainer::metrics::StepRecord record);
  void clear();

  bool is_empty() const { return points_.empty(); }
  bool is_done() const { return last_.steps > 0 && last_.step >= last_.steps; }
  const trainer::metrics::StepRecord& last() const { return last_; }

  struct Point {
    int64_t step = 0;
    double loss = 0, tokens_per_second = 0, step_seconds = 0;
  };
  const std::vector<Point>& points() const { return points_; }
  struct Number {
    int64_t step = 0;
    double value = 0;
  };
  const std::vector<Number>& validation() const { return validation_; }  // losses
  const std::vector<Number>& saves() const { return saves_; }            // seconds that training was held up

 private:
  std::vector<Point> points_;
  std::vector<Number> validation_, saves_;
  trainer::metrics::StepRecord last_;
};

// As many lines as fit num_lines: the charts are left out first. The run is not empty.
std::string watch_text(const WatchedRun& run, const std::string& path, const base::TextStyle& style, int num_lines);

}  // namespace layline::app
