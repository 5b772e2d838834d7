// Where the ranks of one group meet when ranks are threads of one process. Behind thread_group.h.
//
// The k-th collective of every rank is one meeting. Each rank brings its tensors; whoever comes last does the work for
// all of them, in rank order, while the others wait or go on. Messages are matched in the same way by the k-th send and
// the k-th receive of a source, destination and channel.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "layline/trainer/comm/call.h"

namespace layline::trainer::comm {

// What all hubs of a run share. One mutex guards it and every hub: critical sections are short.
struct ThreadRun {
  explicit ThreadRun(std::chrono::milliseconds wait_limit) : timeout(wait_limit) {}

  const std::chrono::milliseconds timeout;
  std::mutex mutex;
  std::string failure;  // of a rank; empty: none. The first one stays.
};

class ThreadHub {
 public:
  struct Meeting {
    std::vector<Call> calls;  // by rank
    std::vector<bool> came;
    int64_t num_came = 0;
    int64_t first_rank = 0;  // who came first
    bool done = false;
    bool failed = false;  // done, but the work itself threw
  };
  struct Message {
    at::Tensor source;       // undefined: not sent yet
    at::Tensor destination;  // undefined: not received yet
    int64_t sender = 0;
    int64_t receiver = 0;
    int channel = 0;
    bool done = false;
    bool failed = false;
  };

  ThreadHub(std::shared_ptr<ThreadRun> run, std::string name, std::vector<int64_t> world_ranks);

  const std::string& name() const { return name_; }
  const std::vector<int64_t>& world_ranks() const { return world_ranks_; }
  int64_t size() const { return static_cast<int64_t>(world_ranks_.size()); }

  // Brings one rank's part. Throws CommError if the ranks' calls differ, or something failed before.
  std::shared_ptr<Meeting> come(int64_t rank, Call call);
  std::shared_ptr<Message> send(int64_t rank, int64_t peer, int channel, at::Tensor tensor);
  std::shared_ptr<Message> receive(int64_t rank, int64_t peer, int channel, at::Tensor tensor);

  // Returns when it is done. Throws CommError on a failure, and after the run's timeout, naming who did not come.
  void wait(Meeting& meeting);
  void wait(Message& message, Operation side);

  bool is_done(const Message& message) const;

  // Wakes everyone who waits here, to see the run's failure.
  void wake() { changed_.notify_all(); }

 private:
  struct Mailbox {
    int64_t num_sent = 0;
    int64_t num_received = 0;
    std::map<int64_t, std::shared_ptr<Message>> open;
  };

  void throw_if_failed(const std::string& doing) const;  // the mutex is held
  [[noreturn]] void fail(const std::string& what);       // the mutex is held
  void check_same(const Meeting& meeting, int64_t rank) const;
  template <class Encounter, class Work>
  void work(Encounter& encounter, Work&& run_work);
  std::shared_ptr<Message> match(int64_t sender, int64_t receiver, int channel, Operation side, at::Tensor tensor);
  std::vector<int64_t> missing(const Meeting& meeting) const;
  std::string title(const std::string& what) const;

  const std::shared_ptr<ThreadRun> run_;
  const std::string name_;
  const std::vector<int64_t> world_ranks_;
  std::condition_variable changed_;
  std::string failure_;
  std::vector<int64_t> num_calls_;  // by rank
  std::map<int64_t, std::shared_ptr<Meeting>> meetings_;
  std::map<std::tuple<int64_t, int64_t, int>, Mailbox> mailboxes_;
};

}  // namespace layline::trainer::comm
