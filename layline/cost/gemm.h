// Seconds of one matrix multiplication from its shape: roofline with wave quantisation (docs/model.md, C2 to C4).
#pragma once

#include "layline/cost/machine.h"

namespace layline::cost {

// Share of the SMs' time that computes real output when an m × n result is cut into thread-block tiles and the tiles
// are dealt in waves over `num_sms` SMs: the best of 128×256, 256×128 and 128×128 tiles, in (0, 1].
// Source: NVIDIA, "Matrix Multiplication Background User's Guide", tile and wave quantisation (C2).
double wave_efficiency(double m, double n, int num_sms);

// C[m×n] = A[m×k]·B[k×n], operands of `operand_bytes` an element: the larger of compute and memory time, without launch
// (C3).
double gemm_seconds(const Machine& machine, double m, double n, double k, double operand_bytes = 2);

// The forward multiplication of a linear layer with `inputs` → `outputs` for m tokens, and the two of its backward
// pass (gradient of the input m×inputs, of the weight inputs×outputs): C4.
double linear_forward_seconds(const Machine& machine, double m, double inputs, double outputs);
double linear_backward_seconds(const Machine& machine, double m, double inputs, double outputs);

}  // namespace layline::cost
