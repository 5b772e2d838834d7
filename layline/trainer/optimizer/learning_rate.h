// The learning rate of each step.
#pragma once

#include <cstdint>

namespace layline::trainer::optimizer {

// AdamW as in PyTorch; RUN.json's keys.
struct OptimizerOptions {
  double learning_rate = 3e-4;
  int64_t warmup_steps = 0;
  double min_learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  // of the gradient norm; 0: off
};

// Of a step from 1 on: learning_rate · step / warmup_steps up to warmup_steps, then half a cosine that begins there and
// ends at min_learning_rate in the last of `steps` steps.
double learning_rate(const OptimizerOptions& options, int64_t step, int64_t steps);

}  // namespace layline::trainer::optimizer
