#include "layline/trainer/kernels/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

// Without it ATen's loops run in one thread, in silence.
#ifndef _OPENMP
#error "compile this file with OpenMP"
#endif

namespace layline::trainer::kernels {

void parallel_rows(int64_t num_rows, int64_t elements_per_row, const std::function<void(int64_t, int64_t)>& body) {
  constexpr int64_t kElementsPerThread = 16384;
  const int64_t grain = std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, elements_per_row));
  at::parallel_for(0, num_rows, grain, body);
}

void parallel_tasks(int64_t n, const std::function<void(int64_t)>& body) {
  at::parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

int64_t num_workers(int64_t num_tasks) { return std::min<int64_t>(num_tasks, at::get_num_threads()); }

void parallel_workers(int64_t num_tasks, const std::function<void(int64_t, const std::function<int64_t()>&)>& body) {
  std::atomic<int64_t> next = 0;
  const auto next_task = [&]() -> int64_t {
    const int64_t task = next++;
    return task < num_tasks ? task : -1;
  };
  parallel_tasks(num_workers(num_tasks), [&](int64_t worker) { body(worker, next_task); });
}

}  // namespace layline::trainer::kernels
