#include "layline/trainer/loop/memory_counter.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <fmt/format.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "layline/base/error.h"
#include "layline/base/units.h"

namespace layline::trainer::loop {

namespace {

// As libtorch's own.
constexpr size_t kAlignment = 64;

// Stands in the line before a block.
struct Label {
  int64_t size = 0;
  tally::Owner owner = tally::Owner::kNone;
};
static_assert(sizeof(Label) <= kAlignment);

MemoryCounter& counter() {
  static MemoryCounter instance;
  return instance;
}

void release_block(void* data) { counter().release(data); }

class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : counter().allocate(bytes);
    return {data, data, &release_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release_block; }
  void copy_data(void* target, const void* source, size_t bytes) const override { std::memcpy(target, source, bytes); }
};

}  // namespace

MemoryCounter& MemoryCounter::install() {
  static CountingAllocator* const allocator = [] {
    // Tensors of a step come and go in the same sizes: without this each would be mapped, zeroed and unmapped anew.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
    auto* made = new CountingAllocator;  // libtorch keeps it until the process ends
    constexpr uint8_t kAboveDefault = 1;
    c10::SetCPUAllocator(made, kAboveDefault);
    return made;
  }();
  (void)allocator;
  return counter();
}

std::array<int64_t, tally::kNumOwners> MemoryCounter::peak_bytes_by_owner() const {
  std::array<int64_t, tally::kNumOwners> bytes{};
  for (size_t owner = 0; owner < tally::kNumOwners; ++owner) bytes[owner] = at_peak_[owner].load();
  return bytes;
}

void* MemoryCounter::allocate(size_t bytes) {
  const Label label{static_cast<int64_t>(bytes), tally::current_owner()};
  const int64_t size = label.size;
  const int64_t live = live_.fetch_add(size, std::memory_order_relaxed) + size;
  if (live > limit_.load(std::memory_order_relaxed)) {
    live_.fetch_sub(size, std::memory_order_relaxed);
    throw base::RunError("out of memory", fmt::format("{} more on top of {}, with a limit of {}",
                                                      base::format_bytes(static_cast<double>(size)),
                                                      base::format_bytes(static_cast<double>(live - size)),
                                                      base::format_bytes(static_cast<double>(limit_.load()))));
  }
  int64_t peak = peak_.load(std::memory_order_relaxed);
  while (live > peak && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
  live_by_owner_[static_cast<size_t>(label.owner)].fetch_add(size, std::memory_order_relaxed);
  for (size_t owner = 0; live > peak && owner < tally::kNumOwners; ++owner) {
    at_peak_[owner].store(live_by_owner_[owner].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes + kAlignment) != 0) throw std::bad_alloc();
  std::memcpy(block, &label, sizeof label);
  return static_cast<char*>(block) + kAlignment;
}

void MemoryCounter::release(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kAlignment;
  Label label;
  std::memcpy(&label, block, sizeof label);
  live_by_owner_[static_cast<size_t>(label.owner)].fetch_sub(label.size, std::memory_order_relaxed);
  live_.fetch_sub(label.size, std::memory_order_relaxed);
  std::free(block);
}

}  // namespace layline::trainer::loop
