#include "layline/trainer/comm/fake_group.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cassert>

#include "layline/trainer/comm/call.h"
#include "layline/trainer/comm/scratch.h"

namespace layline::trainer::comm {

namespace {

class Done : public Pending {
 public:
  void wait() override {}
};

class FakeGroup : public Group {
 public:
  FakeGroup(std::string name, int64_t rank, int64_t size, std::shared_ptr<Traffic> traffic)
      : name_(std::move(name)), rank_(rank), size_(size), traffic_(std::move(traffic)) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

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

  void send(at::Tensor tensor, int64_t peer, int channel) override { message(Operation::kSend, tensor, peer, channel); }
  std::unique_ptr<Pending> receive(at::Tensor tensor, int64_t peer, int channel) override {
    return message(Operation::kReceive, tensor, peer, channel);
  }
  void flush_sends() override {}

 private:
  std::unique_ptr<Pending> message(Operation operation, const at::Tensor& tensor, [[maybe_unused]] int64_t peer,
                                   [[maybe_unused]] int channel) {
    assert(peer >= 0 && peer < size_ && peer != rank_ && channel >= 0 && channel <= 3);
    std::unique_ptr<Pending> done = count({operation, tensor, tensor});
    if (operation == Operation::kReceive) fill(tensor);
    return done;
  }
  void run(const Call& call) { start_with(scratch_, call); }
  std::unique_ptr<Pending> start(const Call& call) { return start_with(scratch_beside_, call); }
  std::unique_ptr<Pending> start_with(Scratch& scratch, const Call& call) {
    std::unique_ptr<Pending> done = count(call);
    const int64_t num_bytes = scratch_bytes(call, size_);
    if (num_bytes > 0) scratch.take(num_bytes, call.input.device());
    if (call.input.defined() && !call.output.is_alias_of(call.input)) fill(call.output);
    return done;
  }
  // With something finite.
  static void fill(const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    tensor.zero_();
  }
  std::unique_ptr<Pending> count(const Call& call) {
    check_call(call, size_);
    if (traffic_) {
      Traffic::Count& count = traffic_->counts[{name_, name_of(call.operation)}];
      ++count.num_calls;
      if (call.input.defined())
        count.bytes += static_cast<int64_t>(std::max(call.input.nbytes(), call.output.nbytes()));
    }
    return std::make_unique<Done>();
  }

  std::string name_;
  int64_t rank_;
  int64_t size_;
  std::shared_ptr<Traffic> traffic_;
  Scratch scratch_, scratch_beside_;
};

}  // namespace

const Traffic::Count& Traffic::of(const std::string& group, const std::string& function) const {
  static const Count kNone;
  const auto found = counts.find({group, function});
  return found == counts.end() ? kNone : found->second;
}

FakeFactory::FakeFactory(int64_t rank, int64_t world_size, std::shared_ptr<Traffic> traffic)
    : rank_(rank), world_size_(world_size), traffic_(std::move(traffic)) {}

std::unique_ptr<Group> FakeFactory::make(const std::string& name, const std::vector<int64_t>& world_ranks) {
  const auto place = std::find(world_ranks.begin(), world_ranks.end(), rank_);
  assert(place != world_ranks.end());
  return make_fake_group(name, place - world_ranks.begin(), static_cast<int64_t>(world_ranks.size()), traffic_);
}

std::unique_ptr<Group> make_fake_group(std::string name, int64_t rank, int64_t size, std::shared_ptr<Traffic> traffic) {
  return std::make_unique<FakeGroup>(std::move(name), rank, size, std::move(traffic));
}

}  // namespace layline::trainer::comm
