// Loops over rows on the threads of the calling thread's pool (at::set_num_threads).
#pragma once

#include <cstdint>
#include <functional>

namespace layline::trainer::kernels {

// Calls body(begin, end) for ranges that together are [0, num_rows), each large enough to be worth a thread.
void parallel_rows(int64_t num_rows, int64_t elements_per_row, const std::function<void(int64_t, int64_t)>& body);

// Calls body(i) for i in [0, n), each of which is worth a thread.
void parallel_tasks(int64_t n, const std::function<void(int64_t)>& body);

// For tasks of different lengths. Calls body(worker, next_task) once for each worker in [0, num_workers(num_tasks));
// next_task() gives each of [0, num_tasks) to one worker, in ascending order, and then -1 to all.
void parallel_workers(int64_t num_tasks,
                      const std::function<void(int64_t worker, const std::function<int64_t()>& next_task)>& body);
// As many as there are threads for.
int64_t num_workers(int64_t num_tasks);

}  // namespace layline::trainer::kernels
