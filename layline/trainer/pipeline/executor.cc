#include "layline/trainer/pipeline/executor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cassert>

#include "layline/trainer/model/mutation.h"
#include "layline/trainer/tally/tally.h"
#include "layline/trainer/tally/work.h"

namespace layline::trainer::pipeline {

using schedule::Instruction;
using schedule::Op;

namespace {

// Forward and backward messages have a channel each, so that between two ranks each channel keeps the lists' order.
constexpr int kForwardChannel = 0;
constexpr int kBackwardChannel = 1;
// Computations ahead of the current one whose receives are posted: their buffers are all that it costs.
constexpr int kReceivesAhead = 1;

bool is_receive(Op op) { return op == Op::kRecvForward || op == Op::kRecvBackward; }
bool is_forward(Op op) { return op == Op::kForward || op == Op::kSendForward || op == Op::kRecvForward; }

tally::Moment moment_of(const Instruction& step) {
  const auto phase = [op = step.op] {
    switch (op) {
      case Op::kForward:
        return tally::Phase::kForward;
      case Op::kBackward:
      case Op::kBackwardInput:
        return tally::Phase::kBackward;
      case Op::kBackwardWeight:
        return tally::Phase::kWeightGradients;
      case Op::kSendForward:
        return tally::Phase::kSendForward;
      case Op::kRecvForward:
        return tally::Phase::kReceiveForward;
      case Op::kSendBackward:
        return tally::Phase::kSendBackward;
      case Op::kRecvBackward:
        break;
    }
    return tally::Phase::kReceiveBackward;
  };
  return {phase(), step.chunk, step.micro_batch};
}

}  // namespace

Executor::Executor(const schedule::Schedule& schedule, int64_t pp_rank, std::vector<Chunk*> chunks, comm::Group& pp,
                   MessageShape message, model::WeightGradients& weight_gradients)
    : schedule_(schedule),
      pp_rank_(pp_rank),
      chunks_(std::move(chunks)),
      pp_(pp),
      message_(std::move(message)),
      weight_gradients_(weight_gradients) {
  assert(pp.size() == schedule.pp && pp.rank() == pp_rank);
  assert(static_cast<int64_t>(chunks_.size()) == schedule.vp);
}

double Executor::run() { return run_list(schedule_.ranks[static_cast<size_t>(pp_rank_)]); }

double Executor::run_forward() {
  std::vector<Instruction> list;
  std::ranges::copy_if(schedule_.ranks[static_cast<size_t>(pp_rank_)], std::back_inserter(list),
                       [](const Instruction& step) { return is_forward(step.op); });
  const at::NoGradGuard no_grad;
  return run_list(list);
}

double Executor::run_list(const std::vector<Instruction>& list) {
  next_receive_ = 0;
  loss_.reset();
  for (size_t i = 0; i < list.size(); ++i) {
    post_receives(list, i);
    execute(list[i]);
  }
  {
    const tally::WorkScope work(tally::Work::kPipeline);
    pp_.flush_sends();
  }
  last_sent_ = {};
  assert(inputs_.empty() && gradients_.empty() && outputs_.empty() && input_gradients_.empty() && recorded_.empty());
  return loss_.defined() && !loss_.is_meta() ? loss_.item<double>() : 0.0;
}

void Executor::post_receives(const std::vector<Instruction>& list, size_t current) {
  int computations = 0;
  for (size_t i = std::min(current, next_receive_); i < list.size(); ++i) {
    if (i >= next_receive_) {
      next_receive_ = i + 1;
      if (is_receive(list[i].op)) receive(list[i]);
    }
    if (i >= current && !schedule::is_message(list[i].op) && ++computations > kReceivesAhead) return;
  }
}

void Executor::execute(const Instruction& step) {
  const tally::MomentScope moment(moment_of(step));
  const tally::WorkScope work(tally::Work::kMemoryBound);
  switch (step.op) {
    case Op::kForward:
      return forward(step);
    case Op::kBackward:
      return backward(step, /*defers_weights=*/false);
    case Op::kBackwardInput:
      return backward(step, /*defers_weights=*/true);
    case Op::kBackwardWeight:
      return weight_gradients_.run({step.chunk, step.micro_batch});
    case Op::kSendForward:
    case Op::kSendBackward:
      return send(step);
    case Op::kRecvForward:
    case Op::kRecvBackward:
      return;  // posted ahead; waited for by the computation that needs it
  }
}

void Executor::receive(const Instruction& step) {
  const tally::MomentScope moment(moment_of(step));
  const bool is_input = step.op == Op::kRecvForward;
  Incoming incoming{at::empty(message_.sizes, message_.options), nullptr};
  const int64_t peer = is_input ? (pp_rank_ + schedule_.pp - 1) % schedule_.pp : (pp_rank_ + 1) % schedule_.pp;
  incoming.pending = pp_.receive(incoming.tensor, peer, is_input ? kForwardChannel : kBackwardChannel);
  (is_input ? inputs_ : gradients_).emplace(Key{step.chunk, step.micro_batch}, std::move(incoming));
}

void Executor::send(const Instruction& step) {
  const bool is_output = step.op == Op::kSendForward;
  auto node = (is_output ? outputs_ : input_gradients_).extract(Key{step.chunk, step.micro_batch});
  assert(!node.empty());
  const int64_t peer = is_output ? (pp_rank_ + 1) % schedule_.pp : (pp_rank_ + schedule_.pp - 1) % schedule_.pp;
  const int channel = is_output ? kForwardChannel : kBackwardChannel;
  last_sent_[static_cast<size_t>(channel)] = {node.key(), node.mapped()};
  pp_.send(std::move(node.mapped()), peer, channel);
}

at::Tensor Executor::take(std::map<Key, Incoming>& incoming, Key key) {
  auto node = incoming.extract(key);
  assert(!node.empty() && "the list computes before it receives");
  {
    const tally::WorkScope work(tally::Work::kPipeline);
    node.mapped().pending->wait();
  }
  return std::move(node.mapped().tensor);
}

void Executor::forward(const Instruction& step) {
  const Key key{step.chunk, step.micro_batch};
  at::Tensor input;
  if (!is_first(step.chunk)) {
    input = take(inputs_, key);
    if (at::GradMode::is_enabled()) input.requires_grad_(true);
  }
  at::Tensor output = chunks_[static_cast<size_t>(step.chunk)]->forward(step.micro_batch, input);
  if (at::GradMode::is_enabled()) recorded_.emplace(key, model::Recorded(input, output));
  if (is_last(step.chunk)) {
    loss_ = loss_.defined() ? loss_ + model::plain(output) : model::plain(output);
  } else {
    outputs_.emplace(key, model::plain(output).contiguous());
  }
}

void Executor::backward(const Instruction& step, bool defers_weights) {
  const Key key{step.chunk, step.micro_batch};
  at::Tensor gradient;
  if (!is_last(step.chunk)) {
    gradient = take(gradients_, key);
    if (last_sent_[kForwardChannel].key == key) last_sent_[kForwardChannel].tensor.reset();
  }
  if (model::mutated(model::Mutation::kSkipLastMicroBatch) && step.micro_batch + 1 == schedule_.micro_batches &&
      gradient.defined()) {
    gradient = at::zeros_like(gradient);
  }
  auto node = recorded_.extract(key);
  assert(!node.empty() && "the list goes back before it goes forward");
  if (defers_weights) weight_gradients_.defer(key);
  at::Tensor input_gradient = node.mapped().backward(gradient);
  weight_gradients_.stop();
  if (!is_first(step.chunk)) input_gradients_.emplace(key, input_gradient.contiguous());
}

}  // namespace layline::trainer::pipeline
