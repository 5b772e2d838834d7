// Seconds of one transformer layer for one micro-batch on one rank (docs/model.md, C5, C9, C13 and C14), and of the
// ends of the model (C15, C16).
#pragma once

#include "layline/cost/machine.h"
#include "layline/memory/activations.h"
#include "layline/spec/job.h"

namespace layline::cost {

// Seconds of one pass by what they are spent on.
struct PassSeconds {
  double gemm = 0;              // matrix multiplications of the linear layers
  double attention = 0;         // scores, softmax, weighted values
  double memory_bound = 0;      // norms, residuals, activation function, rope
  double launch = 0;            // gaps between kernels, and waiting for the CPU
  double tensor_parallel = 0;   // collectives over tp
  double context_parallel = 0;  // exchange of keys and values over cp

  double total() const { return gemm + attention + memory_bound + launch + tensor_parallel + context_parallel; }
  PassSeconds& operator+=(const PassSeconds& other);
  PassSeconds operator*(double factor) const;
};

struct LayerCost {
  PassSeconds forward;
  PassSeconds backward;        // without recomputation
  PassSeconds recompute;       // of a layer that is recomputed, 0 without checkpointing
  double weight_gradient = 0;  // of `backward`, what zero-bubble schedules may delay
};

LayerCost layer_cost(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape);

// The ends of the model for one micro-batch: embedding lookup, and final norm, head and loss.
struct EndCost {
  PassSeconds forward;
  PassSeconds backward;
};
EndCost embedding_cost(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape);
EndCost head_cost(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape);

}  // namespace layline::cost
