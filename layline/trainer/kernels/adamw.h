// AdamW (Loshchilov and Hutter, arXiv:1711.05101) with the arithmetic of torch.optim.AdamW, and what gradient clipping
// needs. Flat contiguous tensors of N elements in fp32 or fp64 on the CPU; nothing happens on meta.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace layline::trainer::kernels {

struct AdamWStep {
  int64_t step = 1;  // from 1
  double learning_rate = 0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double gradient_scale = 1;  // every gradient is multiplied by it first: the clip factor
};

// One pass: updates master weights and both moments. compute_N, if given, receives the new weights rounded to its dtype
// (bf16, or that of the master).
void adamw_(const at::Tensor& master_N, const at::Tensor& exp_avg_N, const at::Tensor& exp_avg_sq_N,
            const at::Tensor& grad_N, const std::optional<at::Tensor>& compute_N, const AdamWStep& step);

// Sum of x², in fp64, in an order that does not depend on the number of threads. bf16, fp32, fp64; 0 on meta. Not
// finite if any element is not.
double sum_of_squares(const at::Tensor& x_N);

// No element is infinite or not a number, and the sum of squares does not overflow.
bool all_finite(const at::Tensor& x_N);

}  // namespace layline::trainer::kernels
