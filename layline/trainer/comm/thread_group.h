// Ranks as threads of one process: the groups of tests, debuggers and small runs on one machine.
//
//   run_as_threads(4, 20s, [](GroupFactory& factory) {
//     std::unique_ptr<Group> world = factory.make_world();
//     …
//   });
//
// or, by hand, a ThreadWorld whose factory(rank) goes to the thread of each rank. The ranks of a meeting are served by
// the thread that comes last, in rank order; asynchronous collectives therefore need no thread of their own. A message
// is copied when both sides have come; send() never waits. Tensors are in main memory; in a group of one, anywhere.
//
// When a rank's thread ends with an error, abort() ends the waits of all other ranks in all groups with CommError,
// which names it. A rank that does not come within the timeout is named as well. After either, the group stays
// unusable. A Pending that is destroyed by an exception on its way up does not wait.
//
// Each rank's thread should call at::set_num_threads(1) first (run_as_threads does).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/comm/group_factory.h"

namespace layline::trainer::comm {

// One group by itself: element r is for the thread of rank r.
std::vector<std::unique_ptr<Group>> make_thread_groups(std::string name, int64_t size,
                                                       std::chrono::milliseconds timeout);

// The ranks of a run and all groups among them. All functions may be called from any thread.
class ThreadWorld {
 public:
  ThreadWorld(int64_t size, std::chrono::milliseconds timeout);
  ~ThreadWorld();

  int64_t size() const;

  // How rank makes its groups; it and its groups may outlive the world. Groups of the same name and ranks are one: made
  // twice by a rank, they carry on where the first one was.
  std::unique_ptr<GroupFactory> factory(int64_t rank);

  // Ends every wait in every group, now and later, with CommError "… rank <rank>: <reason>". The first one counts.
  void abort(int64_t rank, const std::string& reason);

  // "rank <rank>: <reason>" of the first abort; empty before it.
  std::string failure() const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// Runs body once a rank, each on a thread of its own with one intra-op thread, and returns when all have ended. A rank
// that ends with an exception aborts the others; the first exception is thrown again, a CommError only if there is no
// other.
void run_as_threads(int64_t size, std::chrono::milliseconds timeout, const std::function<void(GroupFactory&)>& body);

}  // namespace layline::trainer::comm
