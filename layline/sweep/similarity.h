// How much the planner's error on one layout says of its error on another.
#pragma once

#include <array>
#include <string>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::sweep {

// A layout of a job as numbers: logarithms to base 2 of what is counted, kinds as they are.
struct Setting {
  std::array<double, 9> logarithms{};  // hidden, sequence, GPUs, tp, pp, cp, vp, micro-batch, hsdp
  std::array<int, 6> kinds{};          // sp, ZeRO stage, checkpointing, schedule, attention, norm
};

Setting setting_of(const spec::Job& job, const layout::Layout& layout);

// From 0 to 1 for equal settings: exp(-d / 2), where d counts doublings between numbers and kinds that differ. A valid
// correlation: a product of exponential kernels.
double similarity(const Setting& a, const Setting& b);

}  // namespace layline::sweep
