#include "layline/trainer/dryrun/meta_memory.h"

#include <c10/core/Allocator.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace layline::trainer::dryrun {

struct MetaMemory::State {
  std::vector<Allocation> allocations;
  int64_t num_events = 0;
  int64_t live = 0, peak = 0, peak_event = 0;
  tally::Moment peak_moment;
  std::array<int64_t, tally::kNumPhases> peak_by_phase{};

  size_t take(int64_t bytes) {
    const tally::Moment moment = tally::current_moment();
    allocations.push_back({bytes, tally::current_owner(), moment, {}, ++num_events, 0});
    live += bytes;
    int64_t& phase_peak = peak_by_phase[static_cast<size_t>(moment.phase)];
    phase_peak = std::max(phase_peak, live);
    if (live > peak) peak = live, peak_event = num_events, peak_moment = moment;
    return allocations.size() - 1;
  }
  void free(size_t index) {
    Allocation& allocation = allocations[index];
    live -= allocation.bytes;
    allocation.freed = tally::current_moment();
    allocation.freed_event = ++num_events;
  }
};

namespace {

thread_local std::shared_ptr<MetaMemory::State> recording;

// Stands for a block that is not there.
struct Block {
  std::shared_ptr<MetaMemory::State> state;
  size_t index = 0;
};

void free_block(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  if (block) block->state->free(block->index);
}

class MetaAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device meta(c10::kMeta);
    if (!recording || bytes == 0) return {nullptr, nullptr, &free_block, meta};
    auto block = std::make_unique<Block>(Block{recording, recording->take(static_cast<int64_t>(bytes))});
    return {nullptr, block.release(), &free_block, meta};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* /*target*/, const void* /*source*/, size_t /*bytes*/) const override {}
};

void install_allocator() {
  static MetaAllocator* const allocator = [] {
    auto* made = new MetaAllocator;  // libtorch keeps it until the process ends
    constexpr uint8_t kAboveDefault = 1;
    c10::SetAllocator(c10::kMeta, made, kAboveDefault);
    return made;
  }();
  (void)allocator;
}

}  // namespace

MetaMemory::MetaMemory() : state_(std::make_shared<State>()) {
  install_allocator();
  assert(!recording);
  recording = state_;
}

MetaMemory::~MetaMemory() { recording = nullptr; }

int64_t MetaMemory::live_bytes() const { return state_->live; }
int64_t MetaMemory::peak_bytes() const { return state_->peak; }
tally::Moment MetaMemory::peak_moment() const { return state_->peak_moment; }

const std::array<int64_t, tally::kNumPhases>& MetaMemory::peak_bytes_by_phase() const { return state_->peak_by_phase; }

bool MetaMemory::was_used_by_peak(const Allocation& received) const {
  tally::Moment forward = received.born;
  forward.phase = tally::Phase::kForward;
  return std::ranges::any_of(state_->allocations, [&](const Allocation& allocation) {
    return allocation.born == forward && allocation.born_event > received.born_event &&
           allocation.born_event <= state_->peak_event;
  });
}

std::vector<Allocation> MetaMemory::at_peak() const {
  std::vector<Allocation> live;
  std::ranges::copy_if(state_->allocations, std::back_inserter(live), [this](const Allocation& allocation) {
    return allocation.born_event <= state_->peak_event &&
           (allocation.freed_event == 0 || allocation.freed_event > state_->peak_event);
  });
  return live;
}

}  // namespace layline::trainer::dryrun
