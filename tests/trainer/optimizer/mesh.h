// Ranks as threads on a mesh of tp, dp and pp, with the groups that the optimizer knows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "layline/trainer/comm/thread_group.h"
#include "layline/trainer/optimizer/gradient_reducer.h"

namespace layline::trainer::optimizer {

struct Mesh {
  int64_t tp = 1, dp = 1, pp = 1;
  int64_t num_replicas = 1;  // neighbours in tp that hold the same key-value heads
};

struct Rank {
  int64_t world_rank = 0, tp = 0, dp = 0, pp = 0;
  std::unique_ptr<comm::Group> world, tp_group, dp_group, replicas, tied;

  ReductionGroups groups() const { return {*dp_group, *tp_group, *replicas, tied.get()}; }
};

inline std::vector<int64_t> every(int64_t first, int64_t step, int64_t count) {
  std::vector<int64_t> ranks;
  for (int64_t i = 0; i < count; ++i) ranks.push_back(first + i * step);
  return ranks;
}

// body(rank) on every rank; tp is fastest, pp slowest.
inline void run_on_mesh(const Mesh& mesh, const std::function<void(Rank&)>& body) {
  const int64_t stage = mesh.tp * mesh.dp;
  comm::run_as_threads(stage * mesh.pp, std::chrono::seconds(20), [&](comm::GroupFactory& factory) {
    Rank rank;
    const int64_t r = rank.world_rank = factory.rank();
    rank.tp = r % mesh.tp, rank.dp = r / mesh.tp % mesh.dp, rank.pp = r / stage;
    rank.world = factory.make_world();
    rank.tp_group = factory.make("tp", every(r - rank.tp, 1, mesh.tp));
    rank.dp_group = factory.make("dp", every(r - rank.dp * mesh.tp, mesh.tp, mesh.dp));
    rank.replicas = factory.make("kv", every(r - rank.tp % mesh.num_replicas, 1, mesh.num_replicas));
    if (mesh.pp > 1 && (rank.pp == 0 || rank.pp == mesh.pp - 1)) {
      rank.tied = factory.make("tied", {r % stage, r % stage + stage * (mesh.pp - 1)});
    }
    body(rank);
  });
}

}  // namespace layline::trainer::optimizer
