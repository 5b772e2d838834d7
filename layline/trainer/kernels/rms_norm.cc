#include "layline/trainer/kernels/rms_norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

using simd::Arithmetic;
using simd::RmsNormKernels;

// Rows whose part of the weight's gradient is summed on its own. It depends on nothing but the number of rows, so that
// the sum does not depend on the number of threads.
int64_t rows_per_part(int64_t num_rows) {
  constexpr int64_t kSmallest = 16;
  constexpr int64_t kMostParts = 32;
  return std::max(kSmallest, (num_rows + kMostParts - 1) / kMostParts);
}

template <typename T>
void backward(const at::Tensor& dy_TH, const at::Tensor& x_TH, const at::Tensor& rstd_T, const at::Tensor& weight_H,
              const T* residual, const at::Tensor& dx_TH, const at::Tensor& parts_PH) {
  using A = Arithmetic<T>;
  const int64_t hidden = x_TH.size(-1);
  const int64_t num_rows = rows_of(x_TH);
  const int64_t part_rows = rows_per_part(num_rows);
  const auto run = kernels<RmsNormKernels<T>>().backward;
  parallel_tasks(parts_PH.size(0), [&](int64_t part) {
    const int64_t row = part * part_rows;
    const int64_t start = row * hidden;
    run(data<T>(dy_TH) + start, data<T>(x_TH) + start, data<A>(rstd_T) + row, data<T>(weight_H),
        residual == nullptr ? nullptr : residual + start, std::min(part_rows, num_rows - row), hidden,
        data<T>(dx_TH) + start, data<A>(parts_PH) + part * hidden);
  });
}

}  // namespace

RmsNormOutput rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, double epsilon) {
  const int64_t hidden = x_TH.size(-1);
  const int64_t num_rows = rows_of(x_TH);
  check_dense(x_TH, "x_TH", x_TH.scalar_type(), num_rows * hidden);
  check_dense(weight_H, "weight_H", x_TH.scalar_type(), hidden);
  RmsNormOutput output = {.y_TH = at::empty_like(x_TH),
                          .rstd_T = at::empty({num_rows}, x_TH.options().dtype(arithmetic_type(x_TH)))};
  if (x_TH.is_meta()) return output;
  visit_element_type(x_TH.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto run = kernels<RmsNormKernels<T>>().forward;
    parallel_rows(num_rows, hidden, [&](int64_t begin, int64_t end) {
      run(data<T>(x_TH) + begin * hidden, data<T>(weight_H), epsilon, end - begin, hidden,
          data<T>(output.y_TH) + begin * hidden, data<Arithmetic<T>>(output.rstd_T) + begin);
    });
  });
  return output;
}

at::Tensor rms_norm_apply(const at::Tensor& x_TH, const at::Tensor& rstd_T, const at::Tensor& weight_H) {
  const int64_t hidden = x_TH.size(-1);
  const int64_t num_rows = rows_of(x_TH);
  check_dense(x_TH, "x_TH", x_TH.scalar_type(), num_rows * hidden);
  check_dense(rstd_T, "rstd_T", arithmetic_type(x_TH), num_rows);
  check_dense(weight_H, "weight_H", x_TH.scalar_type(), hidden);
  at::Tensor y_TH = at::empty_like(x_TH);
  if (x_TH.is_meta()) return y_TH;
  visit_element_type(x_TH.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto run = kernels<RmsNormKernels<T>>().apply;
    parallel_rows(num_rows, hidden, [&](int64_t begin, int64_t end) {
      run(data<T>(x_TH) + begin * hidden, data<Arithmetic<T>>(rstd_T) + begin, data<T>(weight_H), end - begin, hidden,
          data<T>(y_TH) + begin * hidden);
    });
  });
  return y_TH;
}

at::Tensor rms_norm_backward(const at::Tensor& dy_TH, const at::Tensor& x_TH, const at::Tensor& rstd_T,
                             const at::Tensor& weight_H, const at::Tensor& dweight_H,
                             const std::optional<at::Tensor>& residual_TH) {
  const int64_t hidden = x_TH.size(-1);
  const int64_t num_rows = rows_of(x_TH);
  check_dense(dy_TH, "dy_TH", x_TH.scalar_type(), num_rows * hidden);
  check_dense(x_TH, "x_TH", x_TH.scalar_type(), num_rows * hidden);
  check_dense(rstd_T, "rstd_T", arithmetic_type(x_TH), num_rows);
  check_dense(weight_H, "weight_H", x_TH.scalar_type(), hidden);
  check_dense(dweight_H, "dweight_H", arithmetic_type(x_TH), hidden);
  if (residual_TH) check_dense(*residual_TH, "residual_TH", x_TH.scalar_type(), num_rows * hidden);
  const at::Tensor dx_TH = at::empty_like(x_TH);
  const int64_t part_rows = rows_per_part(num_rows);
  const at::Tensor parts_PH = at::zeros({(num_rows + part_rows - 1) / part_rows, hidden}, dweight_H.options());
  if (x_TH.is_meta()) return dx_TH;
  visit_element_type(x_TH.scalar_type(), [&]<typename T>(ElementType<T>) {
    using A = Arithmetic<T>;
    backward<T>(dy_TH, x_TH, rstd_T, weight_H, residual_TH ? data<T>(*residual_TH) : nullptr, dx_TH, parts_PH);
    const auto add = kernels<simd::AccumulateKernels<A, A>>().add;
    for (int64_t part = 0; part < parts_PH.size(0); ++part) {
      add(data<A>(parts_PH) + part * hidden, hidden, data<A>(dweight_H));
    }
  });
  return dx_TH;
}

}  // namespace layline::trainer::kernels
