// RMSNorm (Zhang & Sennrich 2019): y = x / √(mean(x²) + ε) · w, over the last dim, with fp32 inside.
#pragma once

#include <ATen/core/Tensor.h>

#include "layline/trainer/model/autograd.h"
#include "layline/trainer/model/context.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

// x [..., H], weight [H]. Fused: one kernel that keeps x and 1/rms. Unfused: the same by separate operators, as
// frameworks without such a kernel do it, each keeping its input. With recomputation of norms the output is not kept
// for the next operator but rebuilt.
Activation rms_norm(const at::Tensor& x, const ParameterGroup& weight, Context& context);

}  // namespace layline::trainer::model
