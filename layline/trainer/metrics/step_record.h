// What is known of a training step when it is done.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace layline::trainer::metrics {

struct StepRecord {
  int64_t step = 0;      // from 1
  int64_t steps = 0;     // in all
  double loss = 0;       // mean over unmasked tokens of the global batch, before the update
  double grad_norm = 0;  // before clipping
  double learning_rate = 0;
  int64_t tokens = 0;  // so far
  double step_seconds = 0;
  double tokens_per_second = 0;                     // of all ranks together
  std::optional<double> mfu;                        // a fraction; none while the machine's peak is not known
  int64_t peak_memory_bytes = 0;                    // of the fullest rank
  std::vector<int64_t> peak_memory_bytes_by_stage;  // of the fullest rank of each pipeline stage
  // Of the first rank of each pipeline stage, by name: what its time went to, which adds up to its step, and whose the
  // bytes are at its peak.
  std::vector<std::map<std::string, double>> seconds_by_stage;
  std::vector<std::map<std::string, int64_t>> memory_bytes_by_stage;
  // Whose step it is: files are appended to.
  std::string layout;
  int64_t num_parameters = 0;
  std::optional<double> checkpoint_seconds;  // that training was held up after this step, where a save began
  std::optional<double> validation_loss;     // where it was measured after this step
  double eta_seconds = 0;                    // until the last step
};

}  // namespace layline::trainer::metrics
