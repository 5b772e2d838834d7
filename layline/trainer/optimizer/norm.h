// The norm of all gradients, and clipping by it.
#pragma once

#include <cstdint>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/optimizer/flat_buffers.h"
#include "layline/trainer/optimizer/gradient_reducer.h"

namespace layline::trainer::optimizer {

// √Σg² over every logical element of the model once, in fp64, the same bits on every rank of the world: each rank sums
// its own share of the parameters that it counts (Parameter::is_counted). Every rank calls it after finish(). Where it
// is not finite all ranks throw the same base::RunError: the step, a rank and its first bad parameter. With ZeRO-1 that
// rank is one whose own backward pass went wrong; with ZeRO-0 replicas cannot be told apart, and it is the first of
// them.
double global_norm(const FlatBuffers& buffers, const GradientReducer& reducer, comm::Group& world, int64_t step);

// What gradients are multiplied by: min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 when clip is 0.
double clip_factor(double norm, double clip);

}  // namespace layline::trainer::optimizer
