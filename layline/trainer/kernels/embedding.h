// Rows of a table by index, and the way back.
//
// Shapes: V rows of the table, H elements a row, T tokens in any shape. Indices are int64 and contiguous; −1 stands for
// a row that is elsewhere. bf16, fp32, fp64. On the meta device outputs are allocated and nothing is computed.
#pragma once

#include <ATen/core/Tensor.h>

namespace layline::trainer::kernels {

// [T…, H]; zeros where the index is −1.
at::Tensor read_rows(const at::Tensor& table_VH, const at::Tensor& indices_T);

// gradient[index] += dy, token by token in their order; −1 adds nothing. gradient fp32 (fp64 for fp64).
void add_to_rows_(const at::Tensor& gradient_VH, const at::Tensor& indices_T, const at::Tensor& dy_TH);

}  // namespace layline::trainer::kernels
