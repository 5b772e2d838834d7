#include "layline/trainer/comm/thread_group.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "layline/trainer/comm/thread_hub.h"
#include "layline/trainer/comm/wait_once.h"

namespace layline::trainer::comm {

namespace {

class ThreadGroup : public Group {
 public:
  ThreadGroup(std::shared_ptr<ThreadHub> hub, int64_t rank) : hub_(std::move(hub)), rank_(rank) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return hub_->size(); }
  const std::string& name() const override { return hub_->name(); }

  void all_reduce(at::Tensor tensor) override { meet({Operation::kAllReduce, tensor, tensor}); }
  void all_reduce_max(at::Tensor tensor) override { meet({Operation::kAllReduceMax, tensor, tensor}); }
  std::unique_ptr<Pending> all_reduce_async(at::Tensor tensor) override {
    return start({Operation::kAllReduce, tensor, tensor});
  }
  void reduce_scatter(at::Tensor input, at::Tensor output) override {
    meet({Operation::kReduceScatter, std::move(input), std::move(output)});
  }
  std::unique_ptr<Pending> reduce_scatter_async(at::Tensor input, at::Tensor output) override {
    return start({Operation::kReduceScatter, std::move(input), std::move(output)});
  }
  void all_gather(at::Tensor input, at::Tensor output) override {
    meet({Operation::kAllGather, std::move(input), std::move(output)});
  }
  std::unique_ptr<Pending> all_gather_async(at::Tensor input, at::Tensor output) override {
    return start({Operation::kAllGather, std::move(input), std::move(output)});
  }
  void broadcast(at::Tensor tensor, int64_t root) override { meet({Operation::kBroadcast, tensor, tensor, root}); }
  void barrier() override { meet({}); }

  void send(at::Tensor tensor, int64_t peer, int channel) override {
    check_peer(peer, channel);
    sent_.erase(
        std::remove_if(sent_.begin(), sent_.end(), [&](const auto& message) { return hub_->is_done(*message); }),
        sent_.end());
    sent_.push_back(hub_->send(rank_, peer, channel, std::move(tensor)));
  }
  std::unique_ptr<Pending> receive(at::Tensor tensor, int64_t peer, int channel) override {
    check_peer(peer, channel);
    auto message = hub_->receive(rank_, peer, channel, std::move(tensor));
    return wait_once([hub = hub_, message] { hub->wait(*message, Operation::kReceive); });
  }
  void flush_sends() override {
    for (; !sent_.empty(); sent_.pop_front()) hub_->wait(*sent_.front(), Operation::kSend);
  }

 private:
  void check_peer([[maybe_unused]] int64_t peer, [[maybe_unused]] int channel) const {
    assert(peer >= 0 && peer < size() && peer != rank_);
    assert(channel >= 0 && channel <= 3);
  }
  std::unique_ptr<Pending> start(Call call) {
    return wait_once([hub = hub_, meeting = hub_->come(rank_, std::move(call))] { hub->wait(*meeting); });
  }
  void meet(Call call) { hub_->wait(*hub_->come(rank_, std::move(call))); }

  std::shared_ptr<ThreadHub> hub_;
  int64_t rank_;
  std::deque<std::shared_ptr<ThreadHub::Message>> sent_;  // those that may not have left
};

}  // namespace

struct ThreadWorld::State {
  State(int64_t num_ranks, std::chrono::milliseconds timeout)
      : size(num_ranks), run(std::make_shared<ThreadRun>(timeout)) {}

  std::shared_ptr<ThreadHub> hub(const std::string& name, const std::vector<int64_t>& world_ranks) {
    const std::lock_guard lock(run->mutex);
    std::shared_ptr<ThreadHub>& slot = hubs[{name, world_ranks}];
    if (!slot) slot = std::make_shared<ThreadHub>(run, name, world_ranks);
    return slot;
  }

  const int64_t size;
  const std::shared_ptr<ThreadRun> run;
  std::map<std::pair<std::string, std::vector<int64_t>>, std::shared_ptr<ThreadHub>> hubs;
};

namespace {

class ThreadFactory : public GroupFactory {
 public:
  ThreadFactory(std::shared_ptr<ThreadWorld::State> state, int64_t rank) : state_(std::move(state)), rank_(rank) {}

  std::unique_ptr<Group> make(const std::string& name, const std::vector<int64_t>& world_ranks) override {
    const auto place = std::find(world_ranks.begin(), world_ranks.end(), rank_);
    assert(place != world_ranks.end());
    return std::make_unique<ThreadGroup>(state_->hub(name, world_ranks), place - world_ranks.begin());
  }
  int64_t rank() const override { return rank_; }
  int64_t world_size() const override { return state_->size; }

 private:
  std::shared_ptr<ThreadWorld::State> state_;
  int64_t rank_;
};

}  // namespace

ThreadWorld::ThreadWorld(int64_t size, std::chrono::milliseconds timeout)
    : state_(std::make_shared<State>(size, timeout)) {}

ThreadWorld::~ThreadWorld() = default;

int64_t ThreadWorld::size() const { return state_->size; }

std::unique_ptr<GroupFactory> ThreadWorld::factory(int64_t rank) {
  assert(rank >= 0 && rank < size());
  return std::make_unique<ThreadFactory>(state_, rank);
}

void ThreadWorld::abort(int64_t rank, const std::string& reason) {
  const std::lock_guard lock(state_->run->mutex);
  if (!state_->run->failure.empty()) return;
  state_->run->failure = fmt::format("rank {}: {}", rank, reason);
  for (const auto& [key, hub] : state_->hubs) hub->wake();
}

std::string ThreadWorld::failure() const {
  const std::lock_guard lock(state_->run->mutex);
  return state_->run->failure;
}

std::vector<std::unique_ptr<Group>> make_thread_groups(std::string name, int64_t size,
                                                       std::chrono::milliseconds timeout) {
  std::vector<int64_t> ranks;
  for (int64_t rank = 0; rank < size; ++rank) ranks.push_back(rank);
  const auto hub = std::make_shared<ThreadHub>(std::make_shared<ThreadRun>(timeout), std::move(name), ranks);
  std::vector<std::unique_ptr<Group>> groups;
  for (const int64_t rank : ranks) groups.push_back(std::make_unique<ThreadGroup>(hub, rank));
  return groups;
}

void run_as_threads(int64_t size, std::chrono::milliseconds timeout, const std::function<void(GroupFactory&)>& body) {
  ThreadWorld world(size, timeout);
  std::mutex mutex;
  std::exception_ptr first_error, first_loss;
  const auto fail = [&](int64_t rank, const std::string& reason, std::exception_ptr& first) {
    world.abort(rank, reason);
    const std::lock_guard lock(mutex);
    if (!first) first = std::current_exception();
  };
  const auto run_rank = [&](int64_t rank) {
    at::set_num_threads(1);
    try {
      body(*world.factory(rank));
    } catch (const CommError& error) {
      fail(rank, error.what(), first_loss);
    } catch (const std::exception& error) {
      fail(rank, error.what(), first_error);
    } catch (...) {
      fail(rank, "unknown exception", first_error);
    }
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) threads.emplace_back(run_rank, rank);
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
  if (first_loss) std::rethrow_exception(first_loss);
}

}  // namespace layline::trainer::comm
