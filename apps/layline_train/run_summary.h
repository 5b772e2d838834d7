// What a run has done, in a few lines at its end.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layline/trainer/metrics/step_record.h"

namespace layline::app {

class RunSummary {
 public:
  // metrics, checkpoints: of the run, "" where it has none.
  RunSummary(std::string metrics, std::string checkpoints)
      : metrics_(std::move(metrics)), checkpoints_(std::move(checkpoints)) {}

  void add(const trainer::metrics::StepRecord& record);

  // Lines that end in "\n"; "" when there was no step.
  std::string text() const;

 private:
  std::string time_text() const;

  std::string metrics_, checkpoints_;
  int64_t num_steps_ = 0, tokens_before_ = 0;
  double seconds_ = 0, first_loss_ = 0;
  std::vector<double> tokens_per_second_;
  std::optional<double> best_validation_;
  int64_t best_step_ = 0;
  std::map<std::string, double> seconds_by_name_;  // of all stages
  trainer::metrics::StepRecord last_;
};

}  // namespace layline::app
