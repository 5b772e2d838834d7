#include "layline/trainer/optimizer/learning_rate.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace layline::trainer::optimizer {

namespace {

// Of the way from learning_rate down to min_learning_rate, what is left after a share `done` of the decay.
double height(Decay decay, double done) {
  switch (decay) {
    case Decay::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * done));
    case Decay::kLinear:
      return 1 - done;
    case Decay::kConstant:
      break;
  }
  return 1;
}

}  // namespace

double learning_rate(const OptimizerOptions& options, int64_t step, int64_t steps) {
  assert(step >= 1);
  const auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  if (step <= options.warmup_steps) return options.learning_rate * ratio(step, options.warmup_steps);
  const int64_t full = std::max<int64_t>(options.warmup_steps, 1);
  const double done = steps > full ? std::min(1.0, ratio(step - full, steps - full)) : 0;
  return options.min_learning_rate + (options.learning_rate - options.min_learning_rate) * height(options.decay, done);
}

}  // namespace layline::trainer::optimizer
