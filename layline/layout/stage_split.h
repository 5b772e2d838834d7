// How a model's layers are spread over the (virtual) stages.
#pragma once

#include <cstdint>
#include <vector>

#include "layline/layout/layout.h"

namespace layline::layout {

// One virtual stage: a run of layers, and the ends of the model.
struct Stage {
  int64_t first_layer = 0;
  int64_t num_layers = 0;
  bool has_embedding = false;
  bool has_head = false;    // final norm, head and loss
};

// Layers of each of `num_stages` virtual stages in model order; they always add up to num_layers.
//   even:     layers / stages each, the remainder one by one to the first stages.
//   uniform:  embedding, final norm and head count as one layer each, the remainder of that goes to the first stages
//             (Aleph Alpha scaling's uniform partition).
//   balanced: minimises the slowest stage, when one layer costs 1, the embedding `embedding_cost` and the head
//             `head_cost` (in layers).
// kExplicit is not handled here: its counts are in the Layout.
std::vector<int64_t> split_layers(SplitKind kind, int64_t num_layers, int64_t num_stages, double embedding_cost = 0,
                                  double head_cost = 0);

// The stages of a legal layout, in model order (virtual stage j runs on pipeline rank j % pp).
std::vector<Stage> stages_of(const Layout& layout, int64_t num_layers, double embedding_cost = 0,
                             double head_cost = 0);

}  // namespace layline::layout
