#include "layline/trainer/kernels/embedding.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

void check_index(int64_t index, int64_t num_rows) {
  TORCH_CHECK(-1 <= index && index < num_rows, "row ", index, " of ", num_rows);
}

template <typename T>
void add_rows(const at::Tensor& gradient_VH, const at::Tensor& indices_T, const at::Tensor& dy_TH) {
  using A = simd::Arithmetic<T>;
  constexpr int64_t kColumns = 256;  // of a task; all of its tokens, so that no two tasks meet in a row
  const int64_t hidden = gradient_VH.size(1);
  const auto add = kernels<simd::AccumulateKernels<A, T>>().add;
  const int64_t* indices = data<int64_t>(indices_T);
  parallel_tasks((hidden + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t first = task * kColumns;
    const int64_t count = std::min(kColumns, hidden - first);
    for (int64_t token = 0; token < indices_T.numel(); ++token) {
      const int64_t row = indices[token];
      check_index(row, gradient_VH.size(0));
      if (row >= 0) add(data<T>(dy_TH) + token * hidden + first, count, data<A>(gradient_VH) + row * hidden + first);
    }
  });
}

}  // namespace

at::Tensor read_rows(const at::Tensor& table_VH, const at::Tensor& indices_T) {
  const int64_t hidden = table_VH.size(1);
  check_dense(table_VH, "table_VH", table_VH.scalar_type(), table_VH.size(0) * hidden);
  check_dense(indices_T, "indices_T", at::kLong, indices_T.numel());
  std::vector<int64_t> shape = indices_T.sizes().vec();
  shape.push_back(hidden);
  at::Tensor output_TH = at::empty(shape, table_VH.options());
  if (table_VH.is_meta()) return output_TH;
  const size_t row_bytes = static_cast<size_t>(hidden) * table_VH.element_size();
  const auto* table = static_cast<const char*>(table_VH.const_data_ptr());
  auto* output = static_cast<char*>(output_TH.mutable_data_ptr());
  const int64_t* indices = data<int64_t>(indices_T);
  parallel_rows(indices_T.numel(), hidden, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const int64_t row = indices[token];
      check_index(row, table_VH.size(0));
      char* target = output + static_cast<size_t>(token) * row_bytes;
      if (row < 0) {
        std::memset(target, 0, row_bytes);
      } else {
        std::memcpy(target, table + static_cast<size_t>(row) * row_bytes, row_bytes);
      }
    }
  });
  return output_TH;
}

void add_to_rows_(const at::Tensor& gradient_VH, const at::Tensor& indices_T, const at::Tensor& dy_TH) {
  const int64_t hidden = gradient_VH.size(1);
  check_dense(gradient_VH, "gradient_VH", arithmetic_type(dy_TH), gradient_VH.size(0) * hidden);
  check_dense(indices_T, "indices_T", at::kLong, indices_T.numel());
  check_dense(dy_TH, "dy_TH", dy_TH.scalar_type(), indices_T.numel() * hidden);
  if (gradient_VH.is_meta()) return;
  visit_element_type(dy_TH.scalar_type(),
                     [&]<typename T>(ElementType<T>) { add_rows<T>(gradient_VH, indices_T, dy_TH); });
}

}  // namespace layline::trainer::kernels
