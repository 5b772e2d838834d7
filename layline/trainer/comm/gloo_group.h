// Groups over the network, with c10d's Gloo: one process a rank, or several ranks as threads of one process.
//
//   GlooFactory factory(store, rank, world_size, {.timeout = 300s, .address = "10.0.0.3"});
//   std::unique_ptr<Group> tp = factory.make("tp", {0, 1});
//
// All groups of a rank share one mesh of connections, so that a further group costs one question to the store and no
// threads or sockets. Sums are taken in rank order, as threads take them: same bits. A group's asynchronous collectives
// run one after the other on a thread of its own, which starts with the first one; its blocking ones may overtake them.
//
// The first failure of any group, or abort(), ends every wait of this rank with CommError: which group, what it did,
// and why (connection closed by rank 2; rank 2 did not come within 300 s). Ranks whose calls differ in operation, dtype
// or number of elements do not meet: both run into the timeout, unless a Watch notices it first.
//
// Tensors are in main memory; in a group of one, anywhere. A group that is destroyed by an exception on its way up ends
// all groups of its rank, so that nothing waits for ranks that may not come.
//
// Ranks should meet in a barrier before they destroy their groups: the connections close with the last of them.
//
// A program that uses these groups calls prepare_process() first.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layline/trainer/comm/activity.h"
#include "layline/trainer/comm/group.h"
#include "layline/trainer/comm/group_factory.h"

namespace c10d {
class Store;
}

namespace layline::trainer::comm {

class GlooMesh;

// What Gloo and c10d need of the process, to be called in main before it makes threads: ignores SIGPIPE, which Gloo
// raises when it writes to a lost rank; turns c10d's flight recorder off (TORCH_FR_BUFFER_SIZE=0 in the environment),
// which is not safe with several ranks in one process; and silences c10d's warnings and stack traces on standard error,
// as what matters in them arrives as an error.
void prepare_process();

struct GlooOptions {
  std::chrono::milliseconds timeout = std::chrono::seconds(300);
  std::string address = "127.0.0.1";  // of this machine, at which the other ranks reach it: name or number
  Activity* activity = nullptr;       // told what this rank waits for; outlives the groups
};

class GlooFactory : public GroupFactory {
 public:
  // Connects to all ranks; every rank makes one with the same store. Throws CommError.
  GlooFactory(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size, GlooOptions options);
  ~GlooFactory() override;

  std::unique_ptr<Group> make(const std::string& name, const std::vector<int64_t>& world_ranks) override;
  int64_t rank() const override;
  int64_t world_size() const override;

  // From any thread: ends all waits of this rank's groups, now and later, with CommError "…: <reason>".
  void abort(const std::string& reason);

 private:
  GlooOptions options_;
  std::shared_ptr<GlooMesh> mesh_;
  std::vector<std::string> made_;  // keys of the groups so far
};

}  // namespace layline::trainer::comm
