// The learning rate of each step.
#pragma once

#include <cstdint>

namespace layline::trainer::optimizer {

enum class Decay { kCosine, kLinear, kConstant };

// AdamW as in PyTorch; RUN.json's keys.
struct OptimizerOptions {
  double learning_rate = 3e-4;
  int64_t warmup_steps = 0;
  Decay decay = Decay::kCosine;
  double min_learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip = 1.0;  // of the gradient norm; 0: off
};

// Of a step from 1 on: learning_rate · step / warmup_steps up to step warmup_steps, which has the full rate (without
// warm-up step 1 has); from there half a cosine, or a line, that reaches min_learning_rate in step `steps` and stays
// there. kConstant: the full rate to the end.
double learning_rate(const OptimizerOptions& options, int64_t step, int64_t steps);

}  // namespace layline::trainer::optimizer
