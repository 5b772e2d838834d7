#include "layline/schedule/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "layline/schedule/in_flight.h"
#include "layline/schedule/messages.h"

namespace layline::schedule {
namespace {

constexpr int64_t kNever = -1;
constexpr size_t kNumOps = 8;

Violation violation(int64_t rank, const Instruction& step, std::string_view what) {
  return {rank, step.micro_batch, fmt::format("{} {}", to_text(step), what)};
}

// Positions in one rank's list of what happens to one micro-batch in one chunk.
struct Positions {
  std::array<int64_t, kNumOps> at{};
  Positions() { at.fill(kNever); }
  int64_t operator[](Op op) const { return at[static_cast<size_t>(op)]; }
  bool has(Op op) const { return (*this)[op] != kNever; }
};

// Looks at one rank's list alone: what is there, once, and in which order.
class ListCheck {
 public:
  ListCheck(const Schedule& schedule, int64_t rank)
      : schedule_(schedule), rank_(rank), positions_(static_cast<size_t>(schedule.vp * schedule.micro_batches)) {}

  std::optional<Violation> run() {
    if (auto wrong = read_list()) return wrong;
    for (int64_t chunk = 0; chunk < schedule_.vp; ++chunk) {
      for (int64_t i = 0; i < schedule_.micro_batches; ++i) {
        if (auto wrong = check_one(static_cast<int32_t>(i), static_cast<int32_t>(chunk))) return wrong;
      }
    }
    return std::nullopt;
  }

 private:
  Positions& at(const Instruction& step) {
    return positions_[static_cast<size_t>(step.chunk * schedule_.micro_batches + step.micro_batch)];
  }

  std::optional<Violation> read_list() {
    const std::vector<Instruction>& list = schedule_.ranks[static_cast<size_t>(rank_)];
    for (size_t i = 0; i < list.size(); ++i) {
      const Instruction& step = list[i];
      if (step.micro_batch < 0 || step.micro_batch >= schedule_.micro_batches || step.chunk < 0 ||
          step.chunk >= schedule_.vp) {
        return violation(rank_, step, "does not exist in this schedule");
      }
      int64_t& position = at(step).at[static_cast<size_t>(step.op)];
      if (position != kNever) return violation(rank_, step, "is there twice");
      position = static_cast<int64_t>(i);
    }
    return std::nullopt;
  }

  // `op` must be there exactly when `wanted`.
  std::optional<Violation> presence(const Positions& found, Instruction step, Op op, bool wanted) const {
    step.op = op;
    if (found.has(op) == wanted) return std::nullopt;
    return violation(rank_, step, wanted ? "is missing" : "should not be there");
  }

  std::optional<Violation> order(const Positions& found, Instruction step, Op first, Op second) const {
    if (!found.has(first) || !found.has(second) || found[first] < found[second]) return std::nullopt;
    step.op = second;
    Instruction before = step;
    before.op = first;
    return violation(rank_, step, fmt::format("comes before {}", to_text(before)));
  }

  std::optional<Violation> check_one(int32_t micro_batch, int32_t chunk) {
    const Instruction step{Op::kForward, micro_batch, chunk};
    const Positions& found = at(step);
    const int64_t stage = schedule_.virtual_stage(rank_, chunk);
    const bool sends = schedule_.pp > 1;
    const bool has_next = sends && stage + 1 < schedule_.num_virtual_stages();
    const bool has_previous = sends && stage > 0;
    const bool is_split = found.has(Op::kBackwardInput) || found.has(Op::kBackwardWeight);
    const std::pair<Op, bool> wanted[] = {{Op::kForward, true},
                                          {Op::kBackward, !is_split},
                                          {Op::kBackwardInput, is_split},
                                          {Op::kBackwardWeight, is_split},
                                          {Op::kRecvForward, has_previous},
                                          {Op::kSendBackward, has_previous},
                                          {Op::kSendForward, has_next},
                                          {Op::kRecvBackward, has_next}};
    for (const auto& [op, is_wanted] : wanted) {
      if (auto wrong = presence(found, step, op, is_wanted)) return wrong;
    }
    const Op backward = is_split ? Op::kBackwardInput : Op::kBackward;
    const std::pair<Op, Op> orders[] = {{Op::kRecvForward, Op::kForward}, {Op::kForward, Op::kSendForward},
                                        {Op::kForward, backward},         {Op::kRecvBackward, backward},
                                        {backward, Op::kSendBackward},    {backward, Op::kBackwardWeight}};
    for (const auto& [first, second] : orders) {
      if (auto wrong = order(found, step, first, second)) return wrong;
    }
    return std::nullopt;
  }

  const Schedule& schedule_;
  int64_t rank_;
  std::vector<Positions> positions_;
};

// Messages of one direction between two ranks must be received in the order in which they are sent.
std::optional<Violation> check_channels(const Schedule& schedule) {
  const Messages messages(schedule);
  for (int64_t rank = 0; rank < schedule.pp; ++rank) {
    for (const Op send : {Op::kSendForward, Op::kSendBackward}) {
      const Op receive = send == Op::kSendForward ? Op::kRecvForward : Op::kRecvBackward;
      std::deque<size_t> sent;
      int64_t partner = rank;
      for (const Instruction& step : schedule.ranks[static_cast<size_t>(rank)]) {
        if (step.op != send) continue;
        partner = messages.partner(rank, step);
        sent.push_back(messages.index(rank, step));
      }
      for (const Instruction& step : schedule.ranks[static_cast<size_t>(partner)]) {
        if (step.op != receive || sent.empty()) continue;
        if (messages.index(partner, step) != sent.front()) {
          return violation(partner, step, fmt::format("is not what rank {} sends next", rank));
        }
        sent.pop_front();
      }
    }
  }
  return std::nullopt;
}

// Runs the lists without a clock and sees whether all come to their end.
class Execution {
 public:
  Execution(const Schedule& schedule, SendMode mode)
      : schedule_(schedule),
        mode_(mode),
        messages_(schedule),
        is_sent_(messages_.count()),
        is_awaited_(messages_.count()),
        next_(schedule.ranks.size()) {}

  std::optional<Violation> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t rank = 0; rank < next_.size(); ++rank) moved |= advance(rank);
    }
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      const std::vector<Instruction>& list = schedule_.ranks[rank];
      if (next_[rank] == list.size()) continue;
      const Instruction& step = list[next_[rank]];
      const int64_t partner = messages_.partner(static_cast<int64_t>(rank), step);
      return violation(static_cast<int64_t>(rank), step, fmt::format("waits forever for rank {} (deadlock)", partner));
    }
    return std::nullopt;
  }

 private:
  // Runs a rank until it must wait; true if it did anything.
  bool advance(size_t rank) {
    const std::vector<Instruction>& list = schedule_.ranks[rank];
    const size_t begin = next_[rank];
    while (next_[rank] < list.size()) {
      const size_t end = group_end(list, next_[rank]);
      if (!pass_group(rank, end)) break;
      next_[rank] = end;
    }
    return next_[rank] != begin;
  }

  size_t group_end(const std::vector<Instruction>& list, size_t begin) const {
    size_t end = begin + 1;
    if (mode_ != SendMode::kGrouped || !is_message(list[begin].op)) return end;
    while (end < list.size() && is_message(list[end].op)) ++end;
    return end;
  }

  bool pass_group(size_t rank, size_t end) {
    bool all_met = true;
    for (size_t i = next_[rank]; i < end; ++i) {
      const Instruction& step = schedule_.ranks[rank][i];
      if (!is_message(step.op)) continue;
      const size_t message = messages_.index(static_cast<int64_t>(rank), step);
      (is_send(step.op) ? is_sent_ : is_awaited_)[message] = true;
      const bool waits = !is_send(step.op) || mode_ != SendMode::kAsynchronous;
      if (waits && !(is_sent_[message] && is_awaited_[message])) all_met = false;
    }
    return all_met;
  }

  const Schedule& schedule_;
  SendMode mode_;
  Messages messages_;
  std::vector<bool> is_sent_, is_awaited_;
  std::vector<size_t> next_;
};

std::optional<Violation> check_activations(const Schedule& schedule) {
  for (int64_t rank = 0; rank < schedule.pp; ++rank) {
    const int64_t peak = peak_activations(schedule.ranks[static_cast<size_t>(rank)]);
    const int64_t allowed = max_in_flight(schedule.kind, schedule.pp, schedule.vp, rank, schedule.micro_batches);
    if (peak > allowed) {
      return Violation{rank, allowed, fmt::format("{} activations are held, {} are claimed", peak, allowed)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string Violation::text() const { return fmt::format("rank {}, micro-batch {}: {}", rank, micro_batch, reason); }

int64_t peak_activations(const std::vector<Instruction>& list) {
  const bool is_split =
      std::any_of(list.begin(), list.end(), [](const Instruction& step) { return step.op == Op::kBackwardWeight; });
  const Op last = is_split ? Op::kBackwardWeight : Op::kBackward;
  int64_t held = 0, peak = 0;
  for (const Instruction& step : list) {
    if (step.op == Op::kForward) peak = std::max(peak, ++held);
    if (step.op == last) --held;
  }
  return peak;
}

std::optional<Violation> find_violation(const Schedule& schedule, const CheckOptions& options) {
  if (static_cast<int64_t>(schedule.ranks.size()) != schedule.pp) {
    return Violation{static_cast<int64_t>(schedule.ranks.size()), 0, fmt::format("pp is {}", schedule.pp)};
  }
  for (int64_t rank = 0; rank < schedule.pp; ++rank) {
    if (auto wrong = ListCheck(schedule, rank).run()) return wrong;
  }
  if (auto wrong = check_channels(schedule)) return wrong;
  if (auto wrong = Execution(schedule, options.sends).run()) return wrong;
  return options.activations ? check_activations(schedule) : std::nullopt;
}

}  // namespace layline::schedule
