// SwiGLU (Shazeer, arXiv:2002.05202): y = silu(gate) · up, on a joint projection whose columns are gate, then up.
//
// Shapes: T tokens (any leading dims), F feed-forward of this rank. Contiguous, on the CPU; bf16 (computed in fp32,
// rounded once), fp32, fp64. On the meta device outputs are allocated and nothing is computed.
#pragma once

#include <ATen/core/Tensor.h>

namespace layline::trainer::kernels {

at::Tensor swiglu(const at::Tensor& gate_up_T2F);  // [T, F]

at::Tensor swiglu_backward(const at::Tensor& dy_TF, const at::Tensor& gate_up_T2F);  // [T, 2F]

}  // namespace layline::trainer::kernels
