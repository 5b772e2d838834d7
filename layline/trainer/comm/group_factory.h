// Makes the groups of a run as one rank sees them: over threads, Gloo, or fake ones for dry runs.
//
//   std::unique_ptr<Group> tp = factory.make("tp", {4, 5, 6, 7});
//
// Every rank of the list calls make() with the same name and the same list, in the same order as the other groups that
// it shares with them; a rank that is not in the list does not call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layline/trainer/comm/group.h"

namespace layline::trainer::comm {

class GroupFactory {
 public:
  virtual ~GroupFactory() = default;

  // world_ranks: in the order of their ranks within the group, each once, this rank among them.
  virtual std::unique_ptr<Group> make(const std::string& name, const std::vector<int64_t>& world_ranks) = 0;

  virtual int64_t rank() const = 0;  // of this process, or thread, in the run
  virtual int64_t world_size() const = 0;

  // The group of all ranks.
  std::unique_ptr<Group> make_world();
};

}  // namespace layline::trainer::comm
