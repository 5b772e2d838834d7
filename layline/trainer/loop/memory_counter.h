// Counts the bytes of all CPU tensors of the process, and refuses beyond a limit as a GPU's allocator would.
//
//   MemoryCounter& memory = MemoryCounter::install();
//   memory.set_limit(2'000'000'000);   …   memory.peak_bytes();
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>

#include "layline/trainer/tally/tally.h"

namespace layline::trainer::loop {

class MemoryCounter {
 public:
  // Puts itself in the place of libtorch's CPU allocator, once a process, before the first tensor is made. Freed memory
  // is kept by the process for the next tensor instead of going back to the system page by page.
  static MemoryCounter& install();

  int64_t live_bytes() const { return live_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_ = live_.load(); }
  // Whose they were when the peak was reached; of other threads' tensors nearly then.
  std::array<int64_t, tally::kNumOwners> peak_bytes_by_owner() const;
  // An allocation that would pass it throws base::RunError "out of memory" with the sizes.
  void set_limit(int64_t bytes) { limit_ = bytes; }

  void* allocate(size_t bytes);
  void release(void* data);

 private:
  using BytesByOwner = std::array<std::atomic<int64_t>, tally::kNumOwners>;

  BytesByOwner live_by_owner_{}, at_peak_{};
  std::atomic<int64_t> live_{0}, peak_{0}, limit_{std::numeric_limits<int64_t>::max()};
};

}  // namespace layline::trainer::loop
