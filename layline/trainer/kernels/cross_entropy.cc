#include "layline/trainer/kernels/cross_entropy.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "layline/trainer/kernels/call.h"
#include "layline/trainer/kernels/parallel.h"

namespace layline::trainer::kernels {
namespace {

using simd::Arithmetic;
using simd::CrossEntropyKernels;

void check_logits(const at::Tensor& logits_TV, int64_t num_valid_columns) {
  TORCH_CHECK(logits_TV.dim() == 2 && logits_TV.is_contiguous(),
              "logits_TV is no contiguous matrix: ", logits_TV.sizes(), " with strides ", logits_TV.strides());
  TORCH_CHECK(0 <= num_valid_columns && num_valid_columns <= logits_TV.size(1), num_valid_columns, " valid columns of ",
              logits_TV.size(1));
}

void check_statistics(const at::Tensor& logits_TV, std::initializer_list<at::Tensor> statistics) {
  for (const at::Tensor& tensor : statistics) {
    check_dense(tensor, "a statistic of logits", arithmetic_type(logits_TV), logits_TV.size(0));
  }
}

// Calls body(row, pointer to the row's logits) for every row, with the kernels for its element type.
template <typename Body>
void for_each_row(const at::Tensor& logits_TV, const Body& body) {
  visit_element_type(logits_TV.scalar_type(), [&]<typename T>(ElementType<T>) {
    const auto run = kernels<CrossEntropyKernels<T>>();
    T* logits = data<T>(logits_TV);
    const int64_t num_columns = logits_TV.size(1);
    parallel_rows(logits_TV.size(0), num_columns, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) body(run, row, logits + row * num_columns);
    });
  });
}

void check_target(int64_t target, int64_t num_valid_columns) {
  TORCH_CHECK(-1 <= target && target < num_valid_columns, "target ", target, " of ", num_valid_columns, " columns");
}

struct GradientRow {
  int64_t num_columns;
  int64_t num_valid;
  int64_t target;
};

// A row whose scale is 0 gets zeros even where its logits are not finite.
template <typename T>
void write_gradient(const CrossEntropyKernels<T>& run, T* logits, const GradientRow& row, Arithmetic<T> max,
                    Arithmetic<T> sum_exp, Arithmetic<T> scale) {
  using A = Arithmetic<T>;
  if (scale == 0) {
    std::fill(logits, logits + row.num_columns, T{});
    return;
  }
  const A target_logit = row.target >= 0 ? run.load(logits + row.target) : 0;
  run.scaled_softmax(logits, row.num_valid, max, sum_exp, scale);
  if (row.target >= 0) run.store(logits + row.target, (std::exp(target_logit - max) / sum_exp - 1) * scale);
  std::fill(logits + row.num_valid, logits + row.num_columns, T{});
}

}  // namespace

ChunkStats make_chunk_stats(const at::Tensor& logits_TV) {
  const at::TensorOptions options = logits_TV.options().dtype(arithmetic_type(logits_TV));
  const int64_t num_tokens = logits_TV.size(0);
  return {.max_T = at::empty({num_tokens}, options),
          .sum_exp_T = at::empty({num_tokens}, options),
          .target_logit_T = at::empty({num_tokens}, options)};
}

void cross_entropy_local_max(const at::Tensor& logits_TV, const at::Tensor& max_T, int64_t num_valid_columns) {
  check_logits(logits_TV, num_valid_columns);
  check_statistics(logits_TV, {max_T});
  if (logits_TV.is_meta()) return;
  for_each_row(logits_TV, [&]<typename T>(const CrossEntropyKernels<T>& run, int64_t row, const T* logits) {
    data<Arithmetic<T>>(max_T)[row] = run.max(logits, num_valid_columns);
  });
}

void cross_entropy_local_sums(const at::Tensor& logits_TV, const at::Tensor& max_T, const at::Tensor& targets_T,
                              const at::Tensor& sum_exp_T, const at::Tensor& target_logit_T,
                              int64_t num_valid_columns) {
  check_logits(logits_TV, num_valid_columns);
  check_statistics(logits_TV, {max_T, sum_exp_T, target_logit_T});
  check_dense(targets_T, "targets_T", at::kLong, logits_TV.size(0));
  if (logits_TV.is_meta()) return;
  const int64_t* targets = data<int64_t>(targets_T);
  for_each_row(logits_TV, [&]<typename T>(const CrossEntropyKernels<T>& run, int64_t row, const T* logits) {
    using A = Arithmetic<T>;
    const A max = data<A>(max_T)[row];
    const int64_t target = targets[row];
    check_target(target, num_valid_columns);
    data<A>(sum_exp_T)[row] = run.sum_exp(logits, num_valid_columns, max);
    data<A>(target_logit_T)[row] = target >= 0 ? run.load(logits + target) - max : 0;
  });
}

void cross_entropy_gradient_(const at::Tensor& logits_TV, const at::Tensor& max_T, const at::Tensor& sum_exp_T,
                             const at::Tensor& targets_T, const at::Tensor& scale_T, int64_t num_valid_columns) {
  check_logits(logits_TV, num_valid_columns);
  check_statistics(logits_TV, {max_T, sum_exp_T, scale_T});
  check_dense(targets_T, "targets_T", at::kLong, logits_TV.size(0));
  if (logits_TV.is_meta()) return;
  const int64_t* targets = data<int64_t>(targets_T);
  for_each_row(logits_TV, [&]<typename T>(const CrossEntropyKernels<T>& run, int64_t row, T* logits) {
    using A = Arithmetic<T>;
    check_target(targets[row], num_valid_columns);
    const GradientRow shape = {
        .num_columns = logits_TV.size(1), .num_valid = num_valid_columns, .target = targets[row]};
    write_gradient<T>(run, logits, shape, data<A>(max_T)[row], data<A>(sum_exp_T)[row], data<A>(scale_T)[row]);
  });
}

at::Tensor cross_entropy_fused_(const at::Tensor& logits_TV, const at::Tensor& targets_T, const at::Tensor& scale_T,
                                int64_t num_valid_columns) {
  check_logits(logits_TV, num_valid_columns);
  check_statistics(logits_TV, {scale_T});
  check_dense(targets_T, "targets_T", at::kLong, logits_TV.size(0));
  at::Tensor loss_T = at::empty({logits_TV.size(0)}, scale_T.options());
  if (logits_TV.is_meta()) return loss_T;
  const int64_t* targets = data<int64_t>(targets_T);
  for_each_row(logits_TV, [&]<typename T>(const CrossEntropyKernels<T>& run, int64_t row, T* logits) {
    using A = Arithmetic<T>;
    check_target(targets[row], num_valid_columns);
    const A max = run.max(logits, num_valid_columns);
    const A sum_exp = run.sum_exp(logits, num_valid_columns, max);
    const GradientRow shape = {
        .num_columns = logits_TV.size(1), .num_valid = num_valid_columns, .target = targets[row]};
    data<A>(loss_T)[row] = shape.target >= 0 ? std::log(sum_exp) - (run.load(logits + shape.target) - max) : 0;
    write_gradient<T>(run, logits, shape, max, sum_exp, data<A>(scale_T)[row]);
  });
  return loss_T;
}

}  // namespace layline::trainer::kernels
