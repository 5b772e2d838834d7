// How much the planner's error on one layout says of its error on another.
#pragma once

#include <array>

#include "layline/cost/step.h"
#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::sweep {

// A layout of a job as numbers: logarithms to base 2 of what is counted, kinds as they are, and what its predicted
// step is made of.
struct Setting {
  std::array<double, 9> logarithms{};            // hidden, sequence, GPUs, tp, pp, cp, vp, micro-batch, hsdp
  std::array<int, 6> kinds{};                    // sp, ZeRO stage, checkpointing, schedule, attention, norm
  std::array<double, cost::kNumKinds> shares{};  // of the step, by cost::Kind; add up to 1, or all 0: not known
};

// seconds: of the predicted step, by cost::Kind.
Setting setting_of(const spec::Job& job, const layout::Layout& layout,
                   const std::array<double, cost::kNumKinds>& seconds);

// From 0 to 1 for equal settings: exp(-d / 2), where d counts doublings between numbers and kinds that differ. A valid
// correlation: a product of exponential kernels.
double similarity(const Setting& a, const Setting& b);

// Covariance of the errors log(real / predicted) of two step times (docs/sweeping.md, T2). `scale` is the standard
// deviation of what is alike only in similar settings; parts of the step err together, more so within one sweep.
double error_covariance(const Setting& a, const Setting& b, bool is_same_sweep, double scale);

}  // namespace layline::sweep
