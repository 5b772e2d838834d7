#include "layline/trainer/comm/thread_hub.h"

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <exception>
#include <utility>

#include "layline/trainer/comm/group.h"
#include "layline/trainer/comm/thread_collectives.h"

namespace layline::trainer::comm {

ThreadHub::ThreadHub(std::shared_ptr<ThreadRun> run, std::string name, std::vector<int64_t> world_ranks)
    : run_(std::move(run)),
      name_(std::move(name)),
      world_ranks_(std::move(world_ranks)),
      num_calls_(world_ranks_.size(), 0) {}

std::shared_ptr<ThreadHub::Meeting> ThreadHub::come(int64_t rank, Call call) {
  check_on_cpu(call, size());
  std::shared_ptr<Meeting> meeting;
  {
    const std::lock_guard lock(run_->mutex);
    throw_if_failed(describe(call));
    const int64_t index = num_calls_[rank]++;
    std::shared_ptr<Meeting>& slot = meetings_[index];
    if (!slot) {
      slot = std::make_shared<Meeting>();
      slot->calls.resize(world_ranks_.size());
      slot->came.resize(world_ranks_.size());
      slot->first_rank = rank;
    }
    meeting = slot;
    if (meeting->num_came > 0 && !same_collective(meeting->calls[meeting->first_rank], call)) {
      fail(fmt::format("rank {} called {}, but rank {} called {}", world_ranks_[rank], describe(call),
                       world_ranks_[meeting->first_rank], describe(meeting->calls[meeting->first_rank])));
    }
    meeting->calls[rank] = std::move(call);
    meeting->came[rank] = true;
    ++meeting->num_came;
    if (meeting->num_came < size()) return meeting;
    meetings_.erase(index);
  }
  work(*meeting, [&] {
    do_collective(meeting->calls);
    meeting->calls.clear();
  });
  return meeting;
}

std::shared_ptr<ThreadHub::Message> ThreadHub::send(int64_t rank, int64_t peer, int channel, at::Tensor tensor) {
  return match(rank, peer, channel, Operation::kSend, std::move(tensor));
}

std::shared_ptr<ThreadHub::Message> ThreadHub::receive(int64_t rank, int64_t peer, int channel, at::Tensor tensor) {
  return match(peer, rank, channel, Operation::kReceive, std::move(tensor));
}

std::shared_ptr<ThreadHub::Message> ThreadHub::match(int64_t sender, int64_t receiver, int channel, Operation side,
                                                     at::Tensor tensor) {
  check_on_cpu({side, tensor, tensor}, size());
  std::shared_ptr<Message> message;
  {
    const std::lock_guard lock(run_->mutex);
    throw_if_failed(name_of(side));
    Mailbox& mailbox = mailboxes_[{sender, receiver, channel}];
    const int64_t index = side == Operation::kSend ? mailbox.num_sent++ : mailbox.num_received++;
    std::shared_ptr<Message>& slot = mailbox.open[index];
    if (!slot) {
      slot = std::make_shared<Message>();
      slot->sender = world_ranks_[sender];
      slot->receiver = world_ranks_[receiver];
      slot->channel = channel;
    }
    message = slot;
    (side == Operation::kSend ? message->source : message->destination) = std::move(tensor);
    if (!message->source.defined() || !message->destination.defined()) return message;
    mailbox.open.erase(index);
    if (message->source.sizes() != message->destination.sizes() ||
        message->source.scalar_type() != message->destination.scalar_type()) {
      fail(fmt::format("rank {} sent {}, but rank {} expects {} (channel {})", message->sender,
                       describe(message->source), message->receiver, describe(message->destination), channel));
    }
  }
  work(*message, [&] {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    message->destination.copy_(message->source);
    message->source.reset();
    message->destination.reset();
  });
  return message;
}

// Nobody else touches what is being worked on: all who take part have come, and wait for `done`.
template <class Encounter, class Work>
void ThreadHub::work(Encounter& encounter, Work&& run_work) {
  std::exception_ptr error;
  std::string reason;
  try {
    run_work();
  } catch (const std::exception& caught) {
    error = std::current_exception();
    reason = caught.what();
  }
  const std::lock_guard lock(run_->mutex);
  if (error && failure_.empty()) failure_ = title(reason);
  encounter.failed = error != nullptr;
  encounter.done = true;
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

void ThreadHub::wait(Meeting& meeting) {
  std::unique_lock lock(run_->mutex);
  // Once all have come it is done in a moment, whatever fails meanwhile.
  const auto is_over = [&] {
    return meeting.done || (meeting.num_came < size() && !(failure_.empty() && run_->failure.empty()));
  };
  if (changed_.wait_for(lock, run_->timeout, is_over) || meeting.num_came == size()) {
    changed_.wait(lock, is_over);
    if (!meeting.done || meeting.failed) throw_if_failed("waiting");
    return;
  }
  fail(fmt::format("{}: {} did not come within {:g} s", describe(meeting.calls[meeting.first_rank]),
                   describe_ranks(missing(meeting)), std::chrono::duration<double>(run_->timeout).count()));
}

void ThreadHub::wait(Message& message, Operation side) {
  std::unique_lock lock(run_->mutex);
  const auto is_over = [&] { return message.done || !failure_.empty() || !run_->failure.empty(); };
  if (changed_.wait_for(lock, run_->timeout, is_over)) {
    if (!message.done || message.failed) throw_if_failed(name_of(side));
    return;
  }
  const bool is_send = side == Operation::kSend;
  fail(fmt::format("{} {} rank {} by rank {} (channel {}): rank {} did not {} within {:g} s", name_of(side),
                   is_send ? "to" : "from", is_send ? message.receiver : message.sender,
                   is_send ? message.sender : message.receiver, message.channel,
                   is_send ? message.receiver : message.sender, is_send ? "receive" : "send",
                   std::chrono::duration<double>(run_->timeout).count()));
}

bool ThreadHub::is_done(const Message& message) const {
  const std::lock_guard lock(run_->mutex);
  return message.done;
}

void ThreadHub::throw_if_failed(const std::string& doing) const {
  if (!failure_.empty()) throw CommError(failure_);
  if (!run_->failure.empty()) throw CommError(title(fmt::format("{}: {}", doing, run_->failure)));
}

void ThreadHub::fail(const std::string& what) {
  if (failure_.empty()) failure_ = title(what);
  changed_.notify_all();
  throw CommError(failure_);
}

std::vector<int64_t> ThreadHub::missing(const Meeting& meeting) const {
  std::vector<int64_t> ranks;
  for (size_t i = 0; i < world_ranks_.size(); ++i) {
    if (!meeting.came[i]) ranks.push_back(world_ranks_[i]);
  }
  return ranks;
}

std::string ThreadHub::title(const std::string& what) const {
  return fmt::format("group {} ({}): {}", name_, describe_ranks(world_ranks_), what);
}

}  // namespace layline::trainer::comm
