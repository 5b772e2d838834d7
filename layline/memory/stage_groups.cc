#include "layline/memory/stage_groups.h"

#include <algorithm>
#include <utility>

#include "layline/layout/stage_split.h"

namespace layline::memory {
namespace {

void append(std::vector<StageGroup>& groups, StageGroup next) {
  if (next.num_ranks <= 0) return;
  groups.push_back(std::move(next));
}

// Even and uniform splits deal `units` over the virtual stages, remainder to the first ones.
void group_dealt(const layout::Layout& layout, int64_t units, int64_t head_units, int64_t embedding_units,
                 std::vector<StageGroup>& groups) {
  const int64_t p = layout.pp;
  const int64_t stages = layout.num_virtual_stages();
  const int64_t base = units / stages;
  const int64_t remainder = units % stages;
  const int64_t each = layout.vp * base + remainder / p;
  const int64_t with_one_more = remainder % p;
  const auto units_of = [&](int64_t rank) { return each + (rank < with_one_more ? 1 : 0); };
  if (p == 1) {
    append(groups, {0, 1, units - head_units - embedding_units, true, true});
    return;
  }
  append(groups, {0, 1, units_of(0) - embedding_units, true, false});
  const int64_t cut = std::clamp<int64_t>(with_one_more, 1, p - 1);
  append(groups, {1, cut - 1, each + 1, false, false});
  append(groups, {cut, p - 1 - cut, each, false, false});
  append(groups, {p - 1, 1, units_of(p - 1) - head_units, false, true});
}

void group_listed(const layout::Layout& layout, int64_t num_layers, EndCosts ends, std::vector<StageGroup>& groups) {
  const std::vector<layout::Stage> stages =
      layout::stages_of(layout, num_layers, ends.embedding_layers, ends.head_layers);
  for (int64_t rank = 0; rank < layout.pp; ++rank) {
    int64_t layers = 0;
    std::vector<int64_t> chunks;
    for (size_t j = static_cast<size_t>(rank); j < stages.size(); j += static_cast<size_t>(layout.pp)) {
      layers += stages[j].num_layers;
      if (layout.vp > 1) chunks.push_back(stages[j].num_layers);
    }
    const bool first = rank == 0, last = rank == layout.pp - 1;
    if (!groups.empty() && !last && groups.back().num_layers == layers && !groups.back().has_embedding &&
        groups.back().chunk_layers == chunks) {
      ++groups.back().num_ranks;
    } else {
      append(groups, {rank, 1, layers, first, last, std::move(chunks)});
    }
  }
}

}  // namespace

void group_stages(const layout::Layout& layout, int64_t num_layers, EndCosts ends, std::vector<StageGroup>& groups) {
  groups.clear();
  switch (layout.split) {
    case layout::SplitKind::kEven:
      return group_dealt(layout, num_layers, 0, 0, groups);
    case layout::SplitKind::kUniform:
      return group_dealt(layout, num_layers + 3, 2, 1, groups);
    default:
      return group_listed(layout, num_layers, ends, groups);
  }
}

}  // namespace layline::memory
