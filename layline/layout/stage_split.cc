#include "layline/layout/stage_split.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <queue>
#include <utility>

namespace layline::layout {
namespace {

std::vector<int64_t> deal(int64_t units, int64_t num_stages) {
  std::vector<int64_t> counts(static_cast<size_t>(num_stages), units / num_stages);
  std::fill_n(counts.begin(), units % num_stages, units / num_stages + 1);
  return counts;
}

// Gives stages that lack a layer one from the stage that has most, the last of them.
void fill_empty_stages(std::vector<int64_t>& counts) {
  for (int64_t& count : counts) {
    while (count < 1) {
      const auto most = std::max_element(counts.rbegin(), counts.rend());
      if (*most <= 1) {
        count = std::max<int64_t>(count, 0);
        break;
      }
      --*most;
      ++count;
    }
  }
}

std::vector<int64_t> split_uniform(int64_t num_layers, int64_t num_stages) {
  std::vector<int64_t> counts = deal(num_layers + kUniformEndUnits, num_stages);
  counts.front() -= kUniformEmbeddingUnits;
  counts.back() -= kUniformHeadUnits;
  if (num_layers >= num_stages) {
    fill_empty_stages(counts);
    return counts;
  }
  return deal(num_layers, num_stages);
}

// Layer by layer to the stage that is cheapest with it: exact for equal layers, since costs only grow (a separable
// convex resource allocation; Ibaraki and Katoh 1988, theorem 4.1.1).
std::vector<int64_t> split_balanced(int64_t num_layers, int64_t num_stages, double embedding_cost, double head_cost) {
  if (num_layers <= num_stages) return deal(num_layers, num_stages);
  const auto end_cost = [&](int64_t stage) {
    return (stage == 0 ? embedding_cost : 0) + (stage == num_stages - 1 ? head_cost : 0);
  };
  using Candidate = std::pair<double, int64_t>;  // cost with one more layer, stage
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> cheapest;
  for (int64_t stage = 0; stage < num_stages; ++stage) cheapest.emplace(2 + end_cost(stage), stage);
  std::vector<int64_t> counts(static_cast<size_t>(num_stages), 1);
  for (int64_t left = num_layers - num_stages; left > 0; --left) {
    const auto [cost, stage] = cheapest.top();
    cheapest.pop();
    ++counts[static_cast<size_t>(stage)];
    cheapest.emplace(static_cast<double>(counts[static_cast<size_t>(stage)] + 1) + end_cost(stage), stage);
  }
  return counts;
}

std::vector<int64_t> split_by_thresholds(int64_t num_layers, int64_t num_stages, double head_cost) {
  std::vector<int64_t> counts(static_cast<size_t>(num_stages), 0);
  const double share = (static_cast<double>(num_layers) + head_cost) / static_cast<double>(num_stages);
  int64_t stage = 0;
  for (int64_t layer = 1; layer <= num_layers; ++layer) {
    ++counts[static_cast<size_t>(stage)];
    const bool passed = static_cast<double>(layer) > share * static_cast<double>(stage + 1);
    if (passed && stage + 1 < num_stages) ++stage;
  }
  return counts;
}

}  // namespace

std::vector<int64_t> split_layers(SplitKind kind, int64_t num_layers, int64_t num_stages, double embedding_cost,
                                  double head_cost) {
  assert(num_layers >= 0 && num_stages >= 1);
  assert(kind != SplitKind::kExplicit);
  switch (kind) {
    case SplitKind::kUniform:
      return split_uniform(num_layers, num_stages);
    case SplitKind::kBalanced:
      return split_balanced(num_layers, num_stages, embedding_cost, head_cost);
    case SplitKind::kThreshold:
      return split_by_thresholds(num_layers, num_stages, head_cost);
    default:
      return deal(num_layers, num_stages);
  }
}

std::optional<std::vector<int64_t>> split_with_ends(int64_t num_layers, int64_t num_stages,
                                                    std::optional<int64_t> first_layers,
                                                    std::optional<int64_t> last_layers) {
  const int64_t num_free = num_stages - (first_layers ? 1 : 0) - (last_layers ? 1 : 0);
  const int64_t left = num_layers - first_layers.value_or(0) - last_layers.value_or(0);
  if (num_free < 0 || left < 0) return std::nullopt;
  if (num_free == 0 ? left != 0 : left % num_free != 0) return std::nullopt;
  std::vector<int64_t> counts(static_cast<size_t>(num_stages), num_free == 0 ? 0 : left / num_free);
  if (first_layers) counts.front() = *first_layers;
  if (last_layers) counts.back() = *last_layers;
  if (std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count < 1; })) return std::nullopt;
  return counts;
}

std::vector<Stage> stages_of(const Layout& layout, int64_t num_layers, double embedding_cost, double head_cost) {
  const std::vector<int64_t> counts =
      layout.split == SplitKind::kExplicit
          ? layout.explicit_split
          : split_layers(layout.split, num_layers, layout.num_virtual_stages(), embedding_cost, head_cost);
  assert(static_cast<int64_t>(counts.size()) == layout.num_virtual_stages());
  std::vector<Stage> stages;
  stages.reserve(counts.size());
  int64_t first_layer = 0;
  for (const int64_t count : counts) {
    stages.push_back({.first_layer = first_layer, .num_layers = count});
    first_layer += count;
  }
  stages.front().has_embedding = true;
  stages.back().has_head = true;
  return stages;
}

}  // namespace layline::layout
