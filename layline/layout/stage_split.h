// How a model's layers are spread over the (virtual) stages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layline/layout/layout.h"

namespace layline::layout {

// One virtual stage: a run of layers, and the ends of the model.
struct Stage {
  int64_t first_layer = 0;
  int64_t num_layers = 0;
  bool has_embedding = false;
  bool has_head = false;  // final norm, head and loss
};

// Layers that the uniform split counts for the embedding, and for the final norm and the head.
inline constexpr int64_t kUniformEmbeddingUnits = 1;
inline constexpr int64_t kUniformHeadUnits = 2;
inline constexpr int64_t kUniformEndUnits = kUniformEmbeddingUnits + kUniformHeadUnits;

// Layers of each of `num_stages` virtual stages in model order; they always add up to num_layers.
//   even:     layers / stages each, the remainder one by one to the first stages.
//   uniform:  embedding, final norm and head count as one layer each, the remainder of that goes to the first stages
//             (Aleph Alpha scaling's uniform partition). Where that leaves an end stage without a layer, it gets one
//             from the fullest stage; such a layout is not legal, see legality.h.
//   balanced: minimises the slowest virtual stage, when one layer costs 1, the embedding `embedding_cost` and the head
//             `head_cost` (in layers, both at least 0); exact; ties go to the first stages, so without end costs it is
//             the even split.
//   threshold: layers, then the head (head_cost layers), are placed one by one; the next stage begins once the total
//   has
//             passed the stage's share (nanotron's build_model). Its last stages may have no layer but the head.
// But for threshold, every stage has a layer when num_layers >= num_stages; otherwise the first num_layers stages have
// one. kExplicit is not handled here: its counts are in the Layout.
std::vector<int64_t> split_layers(SplitKind kind, int64_t num_layers, int64_t num_stages, double embedding_cost = 0,
                                  double head_cost = 0);

// Layers of each virtual stage when the first and the last have the given counts and all others the same, as Megatron's
// --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers. Nothing when what is left does not divide
// or a stage would have no layer.
std::optional<std::vector<int64_t>> split_with_ends(int64_t num_layers, int64_t num_stages,
                                                    std::optional<int64_t> first_layers,
                                                    std::optional<int64_t> last_layers);

// The stages of a legal layout, in model order (virtual stage j runs on pipeline rank j % pp).
std::vector<Stage> stages_of(const Layout& layout, int64_t num_layers, double embedding_cost = 0, double head_cost = 0);

}  // namespace layline::layout
