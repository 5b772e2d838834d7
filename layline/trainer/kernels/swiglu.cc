#include "layline/trainer/kernels/swiglu.h"

#include <ATen/ATen.h>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {

at::Tensor swiglu(const at::Tensor& gate_up_T2F) {
  TORCH_CHECK(gate_up_T2F.size(-1) % 2 == 0, "gate_up_T2F has an odd number of columns: ", gate_up_T2F.size(-1));
  const int64_t feed_forward = gate_up_T2F.size(-1) / 2;
  const int64_t num_rows = rows_of(gate_up_T2F);
  check_dense(gate_up_T2F, "gate_up_T2F", gate_up_T2F.scalar_type(), num_rows * 2 * feed_forward);
  std::vector<int64_t> shape = gate_up_T2F.sizes().vec();
  shape.back() = feed_forward;
  at::Tensor y_TF = at::empty(shape, gate_up_T2F.options());
  if (gate_up_T2F.is_meta()) return y_TF;
  visit_element_type(gate_up_T2F.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto run = kernels<simd::SwigluKernels<T>>().forward;
    parallel_rows(num_rows, feed_forward, [&](int64_t begin, int64_t end) {
      run(data<T>(gate_up_T2F) + begin * 2 * feed_forward, end - begin, feed_forward,
          data<T>(y_TF) + begin * feed_forward);
    });
  });
  return y_TF;
}

at::Tensor swiglu_backward(const at::Tensor& dy_TF, const at::Tensor& gate_up_T2F) {
  const int64_t feed_forward = dy_TF.size(-1);
  const int64_t num_rows = rows_of(dy_TF);
  check_dense(dy_TF, "dy_TF", gate_up_T2F.scalar_type(), num_rows * feed_forward);
  check_dense(gate_up_T2F, "gate_up_T2F", gate_up_T2F.scalar_type(), num_rows * 2 * feed_forward);
  at::Tensor dgate_up_T2F = at::empty_like(gate_up_T2F);
  if (gate_up_T2F.is_meta()) return dgate_up_T2F;
  visit_element_type(gate_up_T2F.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto run = kernels<simd::SwigluKernels<T>>().backward;
    parallel_rows(num_rows, feed_forward, [&](int64_t begin, int64_t end) {
      run(data<T>(dy_TF) + begin * feed_forward, data<T>(gate_up_T2F) + begin * 2 * feed_forward, end - begin,
          feed_forward, data<T>(dgate_up_T2F) + begin * 2 * feed_forward);
    });
  });
  return dgate_up_T2F;
}

}  // namespace layline::trainer::kernels
