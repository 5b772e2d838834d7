// The bytes of all tensors that a thread makes on the meta device, as an allocator sees them: what the same code would
// take on a real one.
//
//   MetaMemory memory;                 // from here on, in this thread
//   {  … tensors on at::kMeta come and go …  }
//   memory.peak_bytes();   memory.at_peak();
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "layline/trainer/tally/tally.h"

namespace layline::trainer::dryrun {

struct Allocation {
  int64_t bytes = 0;
  tally::Owner owner = tally::Owner::kNone;
  tally::Moment born, freed;
  int64_t born_event = 0, freed_event = 0;  // of all takings and freeings in order; freed_event 0: not freed
};

class MetaMemory {
 public:
  // One a thread at a time. Tensors made under it may outlive it.
  MetaMemory();
  ~MetaMemory();
  MetaMemory(const MetaMemory&) = delete;
  MetaMemory& operator=(const MetaMemory&) = delete;

  int64_t live_bytes() const;
  int64_t peak_bytes() const;
  // When the peak was first reached.
  tally::Moment peak_moment() const;
  // What was live then.
  std::vector<Allocation> at_peak() const;
  // Of an input that was received: whether its forward pass had begun by then.
  bool was_used_by_peak(const Allocation& received) const;
  // The most that was live in each phase, by its number; 0 where nothing was taken in it.
  const std::array<int64_t, tally::kNumPhases>& peak_bytes_by_phase() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace layline::trainer::dryrun
