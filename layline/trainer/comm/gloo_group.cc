#include "layline/trainer/comm/gloo_group.h"

#include <ATen/core/Tensor.h>
#include <c10/util/Logging.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <future>
#include <map>
#include <utility>

#include "layline/trainer/comm/call.h"
#include "layline/trainer/comm/gloo_collectives.h"
#include "layline/trainer/comm/gloo_mesh.h"
#include "layline/trainer/comm/task_thread.h"
#include "layline/trainer/comm/wait_once.h"

namespace layline::trainer::comm {

namespace {

constexpr int kNumOperations = static_cast<int>(Operation::kReceive) + 1;

// Tags: | message? 1 | group 13 | call 6, or channel 2 and message 4 | fingerprint 10 | step 1 |. What differs in kind
// or size has another fingerprint and is never matched.
constexpr int64_t kGroupShift = 17;
constexpr int64_t kCallShift = 11;
constexpr int64_t kMessageFlag = int64_t{1} << 30;

int64_t fingerprint(const Call& call) {
  uint64_t mixed = static_cast<uint64_t>(call.operation) * 31 + static_cast<uint64_t>(call.root);
  if (call.input.defined()) {
    mixed = mixed * 64 + static_cast<uint64_t>(call.input.scalar_type());
    mixed = mixed * 1000003 + static_cast<uint64_t>(call.input.numel());
  }
  mixed *= 0x9E3779B97F4A7C15ULL;
  return static_cast<int64_t>(mixed >> 54) << 1;
}

// What a group and everything it has started share.
struct GroupState {
  std::shared_ptr<GlooMesh> mesh;
  std::string name;
  std::vector<int64_t> world_ranks;
  int64_t rank = 0;
  int64_t number = 0;
  Activity* activity = nullptr;
  std::array<const char*, kNumOperations> labels{};

  std::string title(const std::string& what) const {
    return fmt::format("group {} ({}): {}", name, describe_ranks(world_ranks), what);
  }

  // Runs work and makes CommError of what goes wrong in it.
  template <class Work>
  void guard(const Call& call, Work&& work) const {
    try {
      work();
    } catch (const LinkError& error) {
      if (error.is_whole()) throw CommError(error.what());
      const std::string message = title(fmt::format("{}: {}", describe(call), error.what()));
      mesh->explain_failure(error.what(), message);
      throw CommError(message);
    }
  }

  // The same, while the activity says that this rank waits. index: of the collective; -1: a message.
  template <class Work>
  void guard_wait(const Call& call, int64_t index, Work&& work) const {
    if (activity) {
      const bool has_tensor = call.input.defined();
      activity->begin(labels[static_cast<size_t>(call.operation)], number, index, has_tensor ? call.input.numel() : 0,
                      has_tensor ? static_cast<int>(call.input.scalar_type()) : 0);
    }
    try {
      guard(call, std::forward<Work>(work));
    } catch (...) {
      if (activity) activity->end();
      throw;
    }
    if (activity) activity->end();
  }
};

class GlooGroup : public Group {
 public:
  explicit GlooGroup(GroupState state)
      : state_(std::make_shared<const GroupState>(std::move(state))), num_exceptions_(std::uncaught_exceptions()) {}
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;
  ~GlooGroup() override {
    if (std::uncaught_exceptions() > num_exceptions_) state_->mesh->abort("this rank ended with an error");
  }

  int64_t rank() const override { return state_->rank; }
  int64_t size() const override { return static_cast<int64_t>(state_->world_ranks.size()); }
  const std::string& name() const override { return state_->name; }

  void all_reduce(at::Tensor tensor) override { run({Operation::kAllReduce, tensor, tensor}); }
  void all_reduce_max(at::Tensor tensor) override { run({Operation::kAllReduceMax, tensor, tensor}); }
  std::unique_ptr<Pending> all_reduce_async(at::Tensor tensor) override {
    return start({Operation::kAllReduce, tensor, tensor});
  }
  void reduce_scatter(at::Tensor input, at::Tensor output) override {
    run({Operation::kReduceScatter, std::move(input), std::move(output)});
  }
  std::unique_ptr<Pending> reduce_scatter_async(at::Tensor input, at::Tensor output) override {
    return start({Operation::kReduceScatter, std::move(input), std::move(output)});
  }
  void all_gather(at::Tensor input, at::Tensor output) override {
    run({Operation::kAllGather, std::move(input), std::move(output)});
  }
  std::unique_ptr<Pending> all_gather_async(at::Tensor input, at::Tensor output) override {
    return start({Operation::kAllGather, std::move(input), std::move(output)});
  }
  void broadcast(at::Tensor tensor, int64_t root) override { run({Operation::kBroadcast, tensor, tensor, root}); }
  void barrier() override { run({}); }

  void send(at::Tensor tensor, int64_t peer, int channel) override;
  std::unique_ptr<Pending> receive(at::Tensor tensor, int64_t peer, int channel) override;
  void flush_sends() override;

 private:
  int64_t next_tag(const Call& call);
  int64_t next_message_tag(std::map<std::pair<int64_t, int>, int64_t>& counts, const Call& call, int64_t peer,
                           int channel);
  void run(const Call& call);
  std::unique_ptr<Pending> start(Call call);

  std::shared_ptr<const GroupState> state_;
  int num_exceptions_;
  int64_t num_calls_ = 0;
  std::map<std::pair<int64_t, int>, int64_t> num_sent_;  // by peer and channel
  std::map<std::pair<int64_t, int>, int64_t> num_received_;
  Scratch scratch_;
  Scratch scratch_beside_;  // of calls that run in:
  TaskThread collectives_;
  TaskThread sends_;
};

int64_t GlooGroup::next_tag(const Call& call) {
  return state_->number << kGroupShift | (num_calls_++ % 64) << kCallShift | fingerprint(call);
}

int64_t GlooGroup::next_message_tag(std::map<std::pair<int64_t, int>, int64_t>& counts, const Call& call, int64_t peer,
                                    int channel) {
  const int64_t index = counts[{peer, channel}]++;
  return kMessageFlag | state_->number << kGroupShift | (channel * 16 + index % 16) << kCallShift | fingerprint(call);
}

void GlooGroup::run(const Call& call) {
  check_on_cpu(call, size());
  if (size() == 1) return do_alone(call);
  const int64_t index = num_calls_;
  const Exchange exchange{*state_->mesh, state_->world_ranks, state_->rank, next_tag(call), scratch_};
  state_->guard_wait(call, index, [&] { do_collective(exchange, call); });
}

std::unique_ptr<Pending> GlooGroup::start(Call call) {
  check_on_cpu(call, size());
  if (size() == 1) {
    do_alone(call);
    return wait_once([] {});
  }
  state_->guard(call, [&] { state_->mesh->throw_if_failed(); });
  const int64_t index = num_calls_;
  const int64_t tag = next_tag(call);
  auto done = std::make_shared<std::promise<void>>();
  auto result = std::make_shared<std::future<void>>(done->get_future());
  collectives_.add([this, state = state_, call, tag, done] {
    try {
      const Exchange exchange{*state->mesh, state->world_ranks, state->rank, tag, scratch_beside_};
      state->guard(call, [&] { do_collective(exchange, call); });
      done->set_value();
    } catch (...) {
      done->set_exception(std::current_exception());
    }
  });
  return wait_once([state = state_, call = std::move(call), index, result] {
    state->guard_wait(call, index, [&] { result->get(); });
  });
}

void GlooGroup::send(at::Tensor tensor, int64_t peer, int channel) {
  assert(peer >= 0 && peer < size() && peer != rank() && channel >= 0 && channel <= 3);
  const Call call{Operation::kSend, tensor, tensor};
  check_on_cpu(call, size());
  const Call received{Operation::kReceive, tensor, tensor};  // as the other side sees it
  const int64_t tag = next_message_tag(num_sent_, received, peer, channel);
  GlooMesh::Transfer transfer;
  if (tensor.numel() == 0) return;
  state_->guard(call, [&] { transfer = state_->mesh->send(tensor, state_->world_ranks[peer], tag); });
  sends_.add([state = state_, call, transfer] {
    try {
      state->guard(call, [&] { state->mesh->wait(transfer, state->mesh->deadline()); });
    } catch (const CommError&) {  // the next call of any group throws it
    }
  });
}

std::unique_ptr<Pending> GlooGroup::receive(at::Tensor tensor, int64_t peer, int channel) {
  assert(peer >= 0 && peer < size() && peer != rank() && channel >= 0 && channel <= 3);
  const Call call{Operation::kReceive, tensor, tensor};
  check_on_cpu(call, size());
  const int64_t tag = next_message_tag(num_received_, call, peer, channel);
  if (tensor.numel() == 0) return wait_once([] {});
  GlooMesh::Transfer transfer;
  state_->guard(call, [&] { transfer = state_->mesh->receive(tensor, state_->world_ranks[peer], tag); });
  return wait_once([state = state_, call, transfer] {
    state->guard_wait(call, -1, [&] { state->mesh->wait(transfer, state->mesh->deadline()); });
  });
}

void GlooGroup::flush_sends() {
  state_->guard_wait({Operation::kSend, {}, {}}, -1, [&] {
    sends_.drain();
    state_->mesh->throw_if_failed();
  });
}

}  // namespace

void prepare_process() {
  constexpr int kFatal = 3;
  FLAGS_caffe2_log_level = kFatal;
  setenv("TORCH_FR_BUFFER_SIZE", "0", /*replace=*/1);
  std::signal(SIGPIPE, SIG_IGN);
}

GlooFactory::GlooFactory(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t world_size,
                         GlooOptions options)
    : options_(std::move(options)) {
  try {
    mesh_ = std::make_shared<GlooMesh>(store, rank, world_size, options_.address, options_.timeout);
  } catch (const LinkError& error) {
    throw CommError(error.what());
  }
}

GlooFactory::~GlooFactory() = default;

std::unique_ptr<Group> GlooFactory::make(const std::string& name, const std::vector<int64_t>& world_ranks) {
  const auto place = std::find(world_ranks.begin(), world_ranks.end(), rank());
  assert(place != world_ranks.end());
  GroupState state{mesh_, name, world_ranks, place - world_ranks.begin(), 0, options_.activity, {}};
  const std::string key = fmt::format("{}/{}", name, fmt::join(world_ranks, ","));
  const auto num_before = std::count(made_.begin(), made_.end(), key);
  made_.push_back(key);
  try {
    state.number = mesh_->group_number(fmt::format("{}/{}", key, num_before), place == world_ranks.begin());
  } catch (const LinkError& error) {
    throw CommError(state.title(error.what()));
  }
  for (int i = 0; options_.activity && i < kNumOperations; ++i) {
    const auto operation = static_cast<Operation>(i);
    state.labels[i] = options_.activity->keep(fmt::format("{} of {}", name_of(operation), name));
  }
  return std::make_unique<GlooGroup>(std::move(state));
}

int64_t GlooFactory::rank() const { return mesh_->rank(); }

int64_t GlooFactory::world_size() const { return mesh_->size(); }

void GlooFactory::abort(const std::string& reason) { mesh_->abort(reason); }

}  // namespace layline::trainer::comm
