#include "layline/schedule/simulate.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "layline/schedule/check.h"
#include "layline/schedule/messages.h"

namespace layline::schedule {
namespace {

constexpr double kNotYet = std::numeric_limits<double>::infinity();

class Clock {
 public:
  Clock(const Schedule& schedule, const StageTimes& times, const Transfer& transfer)
      : schedule_(schedule),
        times_(times),
        transfer_(transfer),
        messages_(schedule),
        sent_seconds_(messages_.count(), kNotYet),
        awaited_seconds_(messages_.count(), kNotYet),
        now_seconds_(schedule.ranks.size(), 0),
        line_{schedule.pp, schedule.vp, 0, std::vector<RankTimeline>(schedule.ranks.size())} {}

  Timeline run() {
    std::vector<size_t> ready(schedule_.ranks.size());
    for (size_t rank = 0; rank < ready.size(); ++rank) ready[rank] = ready.size() - 1 - rank;
    while (!ready.empty()) {
      const size_t rank = ready.back();
      ready.pop_back();
      advance(rank, ready);
    }
    finish();
    return std::move(line_);
  }

 private:
  bool is_rendezvous() const { return transfer_.mode == Transfers::kGrouped || transfer_.mode == Transfers::kBlocking; }
  size_t position(size_t rank) const { return line_.ranks[rank].steps.size(); }

  // Runs a rank until it must wait; ranks that its messages may have woken are put on `ready`.
  void advance(size_t rank, std::vector<size_t>& ready) {
    const std::vector<Instruction>& list = schedule_.ranks[rank];
    while (position(rank) < list.size()) {
      const Instruction& step = list[position(rank)];
      if (!is_message(step.op)) {
        record(rank, step, now_seconds_[rank] + duration(rank, step));
      } else if (!(is_rendezvous() ? meet(rank, ready) : pass(rank, step, ready))) {
        return;
      }
    }
  }

  double duration(size_t rank, const Instruction& step) const {
    const int64_t stage = schedule_.virtual_stage(static_cast<int64_t>(rank), step.chunk);
    const StageTime& time = times_[static_cast<size_t>(stage)];
    switch (step.op) {
      case Op::kForward:
        return time.forward;
      case Op::kBackward:
        return time.backward;
      case Op::kBackwardInput:
        return time.input();
      default:
        return time.weight;
    }
  }

  void record(size_t rank, const Instruction& step, double end_seconds) {
    const double start_seconds = now_seconds_[rank];
    line_.ranks[rank].steps.push_back({step, start_seconds, end_seconds});
    if (!is_message(step.op)) line_.ranks[rank].compute_seconds += end_seconds - start_seconds;
    now_seconds_[rank] = end_seconds;
  }

  // Sends that do not wait.
  bool pass(size_t rank, const Instruction& step, std::vector<size_t>& ready) {
    const size_t message = messages_.index(static_cast<int64_t>(rank), step);
    double& sent = sent_seconds_[message];
    if (is_send(step.op)) {
      sent = now_seconds_[rank] + transfer_.seconds;
      record(rank, step, transfer_.mode == Transfers::kExposed ? sent : now_seconds_[rank]);
      ready.push_back(static_cast<size_t>(messages_.partner(static_cast<int64_t>(rank), step)));
      return true;
    }
    if (sent == kNotYet) return false;
    record(rank, step, std::max(now_seconds_[rank], sent));
    return true;
  }

  // Messages that start when both ranks have come to them: one, or all up to the next computation.
  bool meet(size_t rank, std::vector<size_t>& ready) {
    const std::vector<Instruction>& list = schedule_.ranks[rank];
    const size_t begin = position(rank);
    size_t end = begin + 1;
    while (transfer_.mode == Transfers::kGrouped && end < list.size() && is_message(list[end].op)) ++end;
    double met_seconds = now_seconds_[rank];
    for (size_t i = begin; i < end; ++i) {
      const size_t message = messages_.index(static_cast<int64_t>(rank), list[i]);
      const bool sends = is_send(list[i].op);
      double& own = (sends ? sent_seconds_ : awaited_seconds_)[message];
      if (own == kNotYet) {
        own = now_seconds_[rank];
        ready.push_back(static_cast<size_t>(messages_.partner(static_cast<int64_t>(rank), list[i])));
      }
      met_seconds = std::max(met_seconds, (sends ? awaited_seconds_ : sent_seconds_)[message]);
    }
    if (met_seconds == kNotYet) return false;
    const double start_seconds = now_seconds_[rank];
    for (size_t i = begin; i < end; ++i) {
      now_seconds_[rank] = start_seconds;
      record(rank, list[i], met_seconds + transfer_.seconds);
    }
    return true;
  }

  void finish() {
    for (size_t rank = 0; rank < line_.ranks.size(); ++rank) {
      assert(position(rank) == schedule_.ranks[rank].size() && "deadlock: the lists are not right");
      line_.makespan_seconds = std::max(line_.makespan_seconds, now_seconds_[rank]);
    }
    for (size_t rank = 0; rank < line_.ranks.size(); ++rank) {
      line_.ranks[rank].idle_seconds = line_.makespan_seconds - line_.ranks[rank].compute_seconds;
      line_.ranks[rank].peak_activations = peak_activations(schedule_.ranks[rank]);
    }
  }

  const Schedule& schedule_;
  const StageTimes& times_;
  const Transfer& transfer_;
  Messages messages_;
  std::vector<double> sent_seconds_, awaited_seconds_, now_seconds_;
  Timeline line_;
};

}  // namespace

double Timeline::bubble_fraction() const {
  double idle_seconds = 0;
  for (const RankTimeline& rank : ranks) idle_seconds += rank.idle_seconds;
  const double all_seconds = makespan_seconds * static_cast<double>(ranks.size());
  return all_seconds > 0 ? idle_seconds / all_seconds : 0;
}

Timeline simulate(const Schedule& schedule, const StageTimes& times, const Transfer& transfer) {
  assert(static_cast<int64_t>(times.size()) == schedule.num_virtual_stages());
  return Clock(schedule, times, transfer).run();
}

std::vector<std::pair<double, int64_t>> activations_over_time(const RankTimeline& rank) {
  const bool is_split = std::any_of(rank.steps.begin(), rank.steps.end(), [](const TimedInstruction& step) {
    return step.instruction.op == Op::kBackwardWeight;
  });
  std::vector<std::pair<double, int64_t>> changes;
  int64_t held = 0;
  for (const TimedInstruction& step : rank.steps) {
    if (step.instruction.op == Op::kForward) changes.emplace_back(step.start_seconds, ++held);
    if (step.instruction.op == (is_split ? Op::kBackwardWeight : Op::kBackward)) {
      changes.emplace_back(step.end_seconds, --held);
    }
  }
  return changes;
}

}  // namespace layline::schedule
