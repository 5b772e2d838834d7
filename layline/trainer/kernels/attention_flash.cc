#include <ATen/ATen.h>

#include <cmath>

#include "layline/trainer/kernels/attention.h"
#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

using simd::HeadRows;

// [B, S, heads, D] with contiguous D, as rows of one head.
template <typename T>
HeadRows<T> rows_of_head(const at::Tensor& x_BSND, int64_t batch, int64_t head) {
  using Element = std::remove_const_t<T>;
  return {data<Element>(x_BSND) + batch * x_BSND.stride(0) + head * x_BSND.stride(2), x_BSND.stride(1)};
}

simd::HeadShape shape_of(const at::Tensor& q_BSND) {
  const int64_t head_size = q_BSND.size(3);
  return {.sequence_length = q_BSND.size(1),
          .head_size = head_size,
          .scale = 1 / std::sqrt(static_cast<double>(head_size))};
}

void check_heads(const at::Tensor& x_BSND, const char* name, const at::Tensor& q_BSND, int64_t num_heads) {
  TORCH_CHECK(x_BSND.dim() == 4 && x_BSND.size(0) == q_BSND.size(0) && x_BSND.size(1) == q_BSND.size(1) &&
                  x_BSND.size(2) == num_heads && x_BSND.size(3) == q_BSND.size(3),
              name, " has the shape ", x_BSND.sizes(), ", queries ", q_BSND.sizes());
  TORCH_CHECK(x_BSND.size(3) == 1 || x_BSND.stride(3) == 1, name, " has strides ", x_BSND.strides());
  TORCH_CHECK(x_BSND.scalar_type() == q_BSND.scalar_type(), name, " is ", x_BSND.scalar_type(), ", queries ",
              q_BSND.scalar_type());
}

void check_inputs(const at::Tensor& q_BSND, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD) {
  const int64_t num_kv_heads = k_BSKD.size(2);
  check_heads(q_BSND, "q_BSND", q_BSND, q_BSND.size(2));
  check_heads(k_BSKD, "k_BSKD", q_BSND, num_kv_heads);
  check_heads(v_BSKD, "v_BSKD", q_BSND, num_kv_heads);
  TORCH_CHECK(num_kv_heads > 0 && q_BSND.size(2) % num_kv_heads == 0, q_BSND.size(2), " query heads and ", num_kv_heads,
              " key-value heads");
}

// Of all workers, before they start and on the device of the inputs, so that a dry run counts it too.
template <typename Kernels>
at::Tensor scratch_of(const Kernels& run, const simd::HeadShape& shape, int64_t num_tasks, const at::Tensor& q_BSND) {
  constexpr int64_t kLine = 16;  // elements: rows stay aligned
  const int64_t size = (run.scratch_size(shape) + kLine - 1) / kLine * kLine;
  return at::empty({num_workers(num_tasks), size}, q_BSND.options().dtype(arithmetic_type(q_BSND)));
}

}  // namespace

AttentionOutput attention_flash(const at::Tensor& q_BSND, const at::Tensor& k_BSKD, const at::Tensor& v_BSKD) {
  check_inputs(q_BSND, k_BSKD, v_BSKD);
  const int64_t num_heads = q_BSND.size(2);
  const int64_t heads_per_group = num_heads / k_BSKD.size(2);
  const simd::HeadShape shape = shape_of(q_BSND);
  const at::ScalarType statistics = arithmetic_type(q_BSND);
  AttentionOutput output = {
      .out_BSND = at::empty(q_BSND.sizes(), q_BSND.options()),
      .saved = at::empty({q_BSND.size(0), num_heads, q_BSND.size(1)}, q_BSND.options().dtype(statistics))};
  visit_element_type(q_BSND.scalar_type(), [&]<typename T>(ElementType<T>) {
    using A = simd::Arithmetic<T>;
    const auto run = kernels<simd::AttentionForwardKernels<T>>();
    const int64_t num_blocks = (shape.sequence_length + run.block_size - 1) / run.block_size;
    const int64_t num_all_heads = q_BSND.size(0) * num_heads;
    const at::Tensor scratch = scratch_of(run, shape, num_blocks * num_all_heads, q_BSND);
    if (q_BSND.is_meta()) return;
    parallel_workers(num_blocks * num_all_heads, [&](int64_t worker, const std::function<int64_t()>& next_task) {
      for (int64_t task = next_task(); task >= 0; task = next_task()) {
        const int64_t block = num_blocks - 1 - task / num_all_heads;  // those with most keys come first
        const int64_t batch = task % num_all_heads / num_heads;
        const int64_t head = task % num_heads;
        run.block(shape, block, rows_of_head<const T>(q_BSND, batch, head),
                  rows_of_head<const T>(k_BSKD, batch, head / heads_per_group),
                  rows_of_head<const T>(v_BSKD, batch, head / heads_per_group),
                  rows_of_head<T>(output.out_BSND, batch, head),
                  data<A>(output.saved) + (batch * num_heads + head) * shape.sequence_length,
                  data<A>(scratch) + worker * scratch.size(1));
      }
    });
  });
  return output;
}

AttentionGradients attention_flash_backward(const at::Tensor& dout_BSND, const at::Tensor& q_BSND,
                                            const at::Tensor& k_BSKD, const at::Tensor& v_BSKD,
                                            const at::Tensor& out_BSND, const at::Tensor& lse_BNS) {
  check_inputs(q_BSND, k_BSKD, v_BSKD);
  check_heads(dout_BSND, "dout_BSND", q_BSND, q_BSND.size(2));
  check_heads(out_BSND, "out_BSND", q_BSND, q_BSND.size(2));
  check_dense(lse_BNS, "lse_BNS", arithmetic_type(q_BSND), q_BSND.size(0) * q_BSND.size(1) * q_BSND.size(2));
  const int64_t num_kv_heads = k_BSKD.size(2);
  const int64_t heads_per_group = q_BSND.size(2) / num_kv_heads;
  const simd::HeadShape shape = shape_of(q_BSND);
  AttentionGradients gradients = {.dq_BSND = at::empty(q_BSND.sizes(), q_BSND.options()),
                                  .dk_BSKD = at::empty(k_BSKD.sizes(), k_BSKD.options()),
                                  .dv_BSKD = at::empty(v_BSKD.sizes(), v_BSKD.options())};
  visit_element_type(q_BSND.scalar_type(), [&]<typename T>(ElementType<T>) {
    using A = simd::Arithmetic<T>;
    const auto run = kernels<simd::AttentionBackwardKernels<T>>();
    const int64_t num_tasks = q_BSND.size(0) * num_kv_heads;
    const at::Tensor scratch = scratch_of(run, shape, num_tasks, q_BSND);
    if (q_BSND.is_meta()) return;
    parallel_workers(num_tasks, [&](int64_t worker, const std::function<int64_t()>& next_task) {
      for (int64_t task = next_task(); task >= 0; task = next_task()) {
        const int64_t batch = task / num_kv_heads;
        const int64_t group = task % num_kv_heads;
        const int64_t head = group * heads_per_group;
        run.group(shape,
                  {.num_heads = heads_per_group,
                   .q = rows_of_head<const T>(q_BSND, batch, head),
                   .k = rows_of_head<const T>(k_BSKD, batch, group),
                   .v = rows_of_head<const T>(v_BSKD, batch, group),
                   .out = rows_of_head<const T>(out_BSND, batch, head),
                   .dout = rows_of_head<const T>(dout_BSND, batch, head),
                   .q_head_stride = q_BSND.stride(2),
                   .out_head_stride = out_BSND.stride(2),
                   .dout_head_stride = dout_BSND.stride(2),
                   .dq_head_stride = gradients.dq_BSND.stride(2),
                   .lse = data<A>(lse_BNS) + (batch * q_BSND.size(2) + head) * shape.sequence_length,
                   .dq = rows_of_head<T>(gradients.dq_BSND, batch, head),
                   .dk = rows_of_head<T>(gradients.dk_BSKD, batch, group),
                   .dv = rows_of_head<T>(gradients.dv_BSKD, batch, group)},
                  data<A>(scratch) + worker * scratch.size(1));
      }
    });
  });
  return gradients;
}

}  // namespace layline::trainer::kernels
