#include "layline/trainer/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace layline::trainer::optimizer {

double learning_rate(const OptimizerOptions& options, int64_t step, int64_t steps) {
  const auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  if (step <= options.warmup_steps) return options.learning_rate * ratio(step, options.warmup_steps);
  // Without warm-up the first step has the full rate.
  const int64_t first = std::max<int64_t>(options.warmup_steps, 1);
  const double done = steps > first ? std::min(1.0, ratio(step - first, steps - first)) : 0.0;
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * done));
  return options.min_learning_rate + (options.learning_rate - options.min_learning_rate) * cosine;
}

}  // namespace layline::trainer::optimizer
