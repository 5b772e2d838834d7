// RMSNorm: y = x · rstd · weight, with rstd = 1 / sqrt(mean(x²) + epsilon) over the last dim (Zhang and Sennrich,
// arXiv:1910.07467; transformers' LlamaRMSNorm).
//
// Shapes: T tokens, H hidden. Tensors are contiguous and on the CPU, x may have any leading dims. bf16, fp32 and fp64;
// bf16 is computed in fp32 and rounded once. On the meta device outputs are allocated and nothing is computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace layline::trainer::kernels {

struct RmsNormOutput {
  at::Tensor y_TH;    // shape and dtype of x
  at::Tensor rstd_T;  // fp32; fp64 for fp64
};

// weight_H has the dtype of x.
RmsNormOutput rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, double epsilon);

// y again from what the forward pass kept, with the same bits.
at::Tensor rms_norm_apply(const at::Tensor& x_TH, const at::Tensor& rstd_T, const at::Tensor& weight_H);

// Returns dx (+ residual, if given: the gradient that reaches x past the norm, added before rounding). The weight's
// gradient is added to dweight_H, in fp32 (fp64 for fp64). The same bits whatever the number of threads.
at::Tensor rms_norm_backward(const at::Tensor& dy_TH, const at::Tensor& x_TH, const at::Tensor& rstd_T,
                             const at::Tensor& weight_H, const at::Tensor& dweight_H,
                             const std::optional<at::Tensor>& residual_TH = std::nullopt);

}  // namespace layline::trainer::kernels
