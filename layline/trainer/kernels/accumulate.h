// Adds gradients of a micro-batch to the main gradients.
#pragma once

#include <ATen/core/Tensor.h>

namespace layline::trainer::kernels {

// main += grad. The same shape; main fp32 and grad bf16 or fp32, or both fp64. Fast where both are contiguous. Nothing
// happens on meta.
void accumulate_(const at::Tensor& main, const at::Tensor& grad);

}  // namespace layline::trainer::kernels
