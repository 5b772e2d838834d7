// Groups that move nothing and return at once: for dry runs on the meta device and for counting what a layout sends.
//
//   auto traffic = std::make_shared<Traffic>();
//   FakeFactory factory(/*rank=*/5, /*world_size=*/1024, traffic);
//
// Tensors are checked as real groups check them, on any device. What is done in place is left as it is, and what would
// come from others is zero: results are not right. Collectives take the scratch memory that they take over Gloo.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/comm/group_factory.h"

namespace layline::trainer::comm {

// What one rank asked of its groups.
struct Traffic {
  struct Count {
    int64_t num_calls = 0;
    int64_t bytes = 0;  // of this rank's own larger tensor: the whole tensor of an all-reduce, the input of a
                        // reduce-scatter, the output of an all-gather, the message
  };
  // By group name and Group's function without "_async": {"dp", "reduce_scatter"}, {"pp", "send"}.
  std::map<std::pair<std::string, std::string>, Count> counts;

  const Count& of(const std::string& group, const std::string& function) const;
};

class FakeFactory : public GroupFactory {
 public:
  // traffic may be null. The factory and its groups are for one thread.
  FakeFactory(int64_t rank, int64_t world_size, std::shared_ptr<Traffic> traffic = nullptr);

  std::unique_ptr<Group> make(const std::string& name, const std::vector<int64_t>& world_ranks) override;
  int64_t rank() const override { return rank_; }
  int64_t world_size() const override { return world_size_; }

 private:
  int64_t rank_;
  int64_t world_size_;
  std::shared_ptr<Traffic> traffic_;
};

// One group by itself.
std::unique_ptr<Group> make_fake_group(std::string name, int64_t rank, int64_t size,
                                       std::shared_ptr<Traffic> traffic = nullptr);

}  // namespace layline::trainer::comm
