#include "layline/trainer/comm/group_factory.h"

#include <numeric>

namespace layline::trainer::comm {

std::unique_ptr<Group> GroupFactory::make_world() {
  std::vector<int64_t> ranks(static_cast<size_t>(world_size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make("world", ranks);
}

}  // namespace layline::trainer::comm
