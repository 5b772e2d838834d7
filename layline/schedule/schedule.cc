#include "layline/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>

#include "layline/schedule/in_flight.h"

namespace layline::schedule {
namespace {

// Writes one rank's list: each computation with the receive before it and the send after it.
class ListWriter {
 public:
  ListWriter(const PipelineShape& shape, int64_t rank) : shape_(shape), rank_(rank) {}

  void forward(int64_t micro_batch, int64_t chunk) {
    if (!is_first(chunk)) add(Op::kRecvForward, micro_batch, chunk);
    add(Op::kForward, micro_batch, chunk);
    if (!is_last(chunk)) add(Op::kSendForward, micro_batch, chunk);
  }

  void backward(int64_t micro_batch, int64_t chunk, Op op = Op::kBackward) {
    if (!is_last(chunk)) add(Op::kRecvBackward, micro_batch, chunk);
    add(op, micro_batch, chunk);
    if (!is_first(chunk)) add(Op::kSendBackward, micro_batch, chunk);
  }

  void weight(int64_t micro_batch, int64_t chunk) { add(Op::kBackwardWeight, micro_batch, chunk); }

  // One forward and one backward of the steady state, with room for blocking sends between them.
  void forward_and_backward(const Instruction& forth, const Instruction& back) {
    if (shape_.blocking_order && shape_.vp > 1) return computing_together(forth, back);
    forward(forth.micro_batch, forth.chunk);
    const size_t receive = list_.size();
    const bool just_sent = list_.back().op == Op::kSendForward;
    backward(back.micro_batch, back.chunk, back.op);
    if (shape_.blocking_order && just_sent && list_[receive].op == Op::kRecvBackward) {
      std::swap(list_[receive - 1], list_[receive]);
    }
  }

  std::vector<Instruction> take() { return std::move(list_); }

 private:
  bool is_first(int64_t chunk) const { return shape_.pp == 1 || (rank_ == 0 && chunk == 0); }
  bool is_last(int64_t chunk) const { return shape_.pp == 1 || (rank_ == shape_.pp - 1 && chunk == shape_.vp - 1); }
  void add(Op op, int64_t micro_batch, int64_t chunk) {
    list_.push_back({op, static_cast<int32_t>(micro_batch), static_cast<int32_t>(chunk)});
  }

  // Both receives, both computations, both sends: with the receives of what follows they make one group.
  void computing_together(const Instruction& forth, const Instruction& back) {
    if (!is_first(forth.chunk)) add(Op::kRecvForward, forth.micro_batch, forth.chunk);
    if (!is_last(back.chunk)) add(Op::kRecvBackward, back.micro_batch, back.chunk);
    add(Op::kForward, forth.micro_batch, forth.chunk);
    add(back.op, back.micro_batch, back.chunk);
    if (!is_last(forth.chunk)) add(Op::kSendForward, forth.micro_batch, forth.chunk);
    if (!is_first(back.chunk)) add(Op::kSendBackward, back.micro_batch, back.chunk);
  }

  const PipelineShape& shape_;
  int64_t rank_;
  std::vector<Instruction> list_;
};

void write_gpipe(const PipelineShape& shape, ListWriter& list) {
  for (int64_t i = 0; i < shape.micro_batches; ++i) list.forward(i, 0);
  for (int64_t i = 0; i < shape.micro_batches; ++i) list.backward(i, 0);
}

// The k-th forward, or backward, of a rank: chunks in turn for every group of micro-batches; the first groups may be
// one larger than the others.
class InterleavedOrder {
 public:
  InterleavedOrder(int64_t pp, int64_t vp, int64_t micro_batches)
      : vp_(vp),
        size_(micro_batches / std::max<int64_t>(1, micro_batches / pp)),
        num_larger_(micro_batches % std::max<int64_t>(1, micro_batches / pp)) {}

  Instruction step(int64_t k, bool is_forward) const {
    const int64_t larger_steps = num_larger_ * (size_ + 1) * vp_;
    return k < larger_steps ? step_in(k, size_ + 1, 0, is_forward)
                            : step_in(k - larger_steps, size_, num_larger_ * (size_ + 1), is_forward);
  }

 private:
  Instruction step_in(int64_t k, int64_t size, int64_t first, bool is_forward) const {
    const int64_t group = k / (size * vp_);
    const int64_t turn = k % (size * vp_) / size;
    return {is_forward ? Op::kForward : Op::kBackward, static_cast<int32_t>(first + group * size + k % size),
            static_cast<int32_t>(is_forward ? turn : vp_ - 1 - turn)};
  }

  int64_t vp_, size_, num_larger_;
};

void write_one_f_one_b(const PipelineShape& shape, int64_t rank, ListWriter& list) {
  const InterleavedOrder order(shape.pp, shape.vp, shape.micro_batches);
  const int64_t total = shape.micro_batches * shape.vp;
  const int64_t ahead = shape.pp - rank - 1;
  const int64_t group = interleaved_group_size(shape.pp, shape.micro_batches);
  const int64_t warm_up = std::min(total, shape.vp == 1 ? ahead : 2 * ahead + (shape.vp - 1) * group);
  for (int64_t k = 0; k < warm_up; ++k) {
    const Instruction step = order.step(k, true);
    list.forward(step.micro_batch, step.chunk);
  }
  for (int64_t k = warm_up; k < total; ++k) {
    list.forward_and_backward(order.step(k, true), order.step(k - warm_up, false));
  }
  for (int64_t k = total - warm_up; k < total; ++k) {
    const Instruction step = order.step(k, false);
    list.backward(step.micro_batch, step.chunk);
  }
}

void write_zero_bubble(const PipelineShape& shape, int64_t rank, ListWriter& list) {
  const int64_t m = shape.micro_batches;
  const int64_t warm_up = std::min(m, shape.pp - rank - 1);
  const int64_t late = rank;
  for (int64_t k = 0; k < warm_up; ++k) list.forward(k, 0);
  for (int64_t k = 0; k < m; ++k) {
    const Instruction back{Op::kBackwardInput, static_cast<int32_t>(k), 0};
    if (k + warm_up < m) {
      list.forward_and_backward({Op::kForward, static_cast<int32_t>(k + warm_up), 0}, back);
    } else {
      list.backward(k, 0, back.op);
    }
    if (k >= late) list.weight(k - late, 0);
  }
  for (int64_t i = std::max<int64_t>(0, m - late); i < m; ++i) list.weight(i, 0);
}

}  // namespace

std::string to_text(const Instruction& instruction) {
  constexpr std::array kNames = {"Forward",     "Backward",    "BackwardInput", "BackwardWeight",
                                 "SendForward", "RecvForward", "SendBackward",  "RecvBackward"};
  return fmt::format("{} of micro-batch {}, chunk {}", kNames[static_cast<size_t>(instruction.op)],
                     instruction.micro_batch, instruction.chunk);
}

Schedule make_schedule(ScheduleKind kind, const PipelineShape& shape) {
  assert(shape.pp >= 1 && shape.vp >= 1 && shape.micro_batches >= 1);
  assert(shape.vp == 1 || kind == ScheduleKind::kInterleaved);
  Schedule schedule{kind, shape.pp, shape.vp, shape.micro_batches, {}};
  for (int64_t rank = 0; rank < shape.pp; ++rank) {
    ListWriter list(shape, rank);
    switch (kind) {
      case ScheduleKind::kGpipe:
        write_gpipe(shape, list);
        break;
      case ScheduleKind::kZeroBubble:
        write_zero_bubble(shape, rank, list);
        break;
      case ScheduleKind::kOneFOneB:
      case ScheduleKind::kInterleaved:
        write_one_f_one_b(shape, rank, list);
        break;
    }
    schedule.ranks.push_back(list.take());
  }
  return schedule;
}

Schedule make_schedule(const layout::Layout& layout, int64_t micro_batches) {
  return make_schedule(layout.schedule, {.pp = layout.pp, .vp = layout.vp, .micro_batches = micro_batches});
}

}  // namespace layline::schedule
