// Pipeline ranks that look alike, so that pricing costs O(kinds of stages) and not O(stages).
#pragma once

#include <cstdint>
#include <vector>

#include "layline/layout/layout.h"

namespace layline::memory {

// A run of consecutive pipeline ranks with the same number of layers and the same ends of the model. With virtual
// stages the layers are those of all chunks of a rank.
struct StageGroup {
  int64_t first_rank = 0;
  int64_t num_ranks = 1;
  int64_t num_layers = 0;
  bool has_embedding = false;
  bool has_head = false;
  std::vector<int64_t> chunk_layers = {};  // of each virtual stage, where there are several and the split is listed
};

// What one embedding and one head (final norm, head, loss) cost in layers; only SplitKind::kBalanced (seconds) and
// kThreshold (parameters) look at them.
struct EndCosts {
  double embedding_layers = 0;
  double head_layers = 0;
};

// The groups of a legal layout in rank order, written to `groups` (cleared first; no allocation once it has grown).
// O(1) for even and uniform splits, O(virtual stages) for the others.
void group_stages(const layout::Layout& layout, int64_t num_layers, EndCosts ends, std::vector<StageGroup>& groups);

}  // namespace layline::memory
