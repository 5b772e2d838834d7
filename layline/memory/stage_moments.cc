#include "layline/memory/stage_moments.h"

#include <algorithm>
#include <cassert>

namespace layline::memory {

namespace {

// Forwards and backwards of a rank in the order of its list, by their number in it (schedule/schedule.cc): warm-up
// forwards, then a forward and a backward in turn, then backwards.
class List {
 public:
  explicit List(const StageOnList& stage)
      : stage_(stage), vp_(static_cast<int64_t>(stage.chunks.size())), total_(stage.micro_batches * vp_) {
    const int64_t ahead = stage.pp - stage.rank - 1;
    warm_up_ = std::min(total_, vp_ == 1 ? ahead : 2 * ahead + (vp_ - 1) * stage.pp);
    if (stage.schedule == spec::ScheduleKind::kGpipe) warm_up_ = total_;
  }

  StageMoment peak() {
    if (stage_.schedule == spec::ScheduleKind::kZeroBubble) {
      for (const int64_t k : {int64_t{0}, int64_t{1}, stage_.rank, stage_.rank + 1, total_ - warm_up_ - 1,
                              total_ - warm_up_, total_ - 1}) {
        add_zero_bubble(k);
      }
      return most_;
    }
    if (vp_ == 1) {
      for (const int64_t k : {int64_t{0}, int64_t{1}, total_ - warm_up_ - 1}) add(k);
      return most_;
    }
    // Numbers in flight of each chunk change their course where one group of micro-batches ends.
    for (int64_t turn = 0; turn <= vp_; ++turn) {
      for (int64_t beside = -1; beside <= 1; ++beside) {
        add(turn * stage_.pp + beside);
        add(turn * stage_.pp - (warm_up_ + 1) % stage_.pp + beside);
      }
    }
    add(total_ - 1);
    return most_;
  }

 private:
  // The k-th backward, and the forward before it.
  void add(int64_t k) {
    if (k < 0 || k >= total_) return;
    if (warm_up_ + k < total_) add_forward(warm_up_ + k);
    if (k == 0 && warm_up_ > 0) add_forward(warm_up_ - 1);
    add_backward(k);
  }

  void add_forward(int64_t k) {
    const int64_t num_backwards = std::max<int64_t>(0, k - warm_up_);
    const int64_t chunk = chunk_of(k);
    StageMoment moment = in_flight(k, num_backwards);
    moment.activations += passes(chunk).forward.activations;
    moment.transient += passes(chunk).forward.transient;
    moment.logits += passes(chunk).forward.logits;
    const bool forward_follows = k < warm_up_ && k + 1 < total_;
    moment.pipeline = forward_follows ? input_of(k + 1) : gradient_of(k < warm_up_ ? 0 : k - warm_up_);
    moment.pipeline += (k > 0 ? sent_forward() : 0) + (num_backwards > 0 ? sent_backward() : 0);
    keep_larger(moment);
  }

  void add_backward(int64_t k) {
    const int64_t num_forwards = std::min(total_, warm_up_ + k + 1);
    StageMoment moment = in_flight(num_forwards, k);
    add_own_backward(moment, k);
    moment.pipeline += num_forwards < total_ ? input_of(num_forwards) : k + 1 < total_ ? gradient_of(k + 1) : 0;
    moment.pipeline += (vp_ == 1 && num_forwards - 1 == k ? 0 : sent_forward()) + (k > 0 ? sent_backward() : 0);
    keep_larger(moment);
  }

  void add_own_backward(StageMoment& moment, int64_t k) const {
    const ChunkPasses& own = passes(back_chunk_of(k));
    const double gradient = gradient_of(k);
    moment.activations += own.backward.activations - own.kept;
    moment.transient += own.backward.transient - gradient;
    moment.logits += own.backward.logits;
    moment.pipeline += gradient;
  }

  // A backward pass, the forward pass before it, and the weight gradients after it, those of `rank` micro-batches ago.
  void add_zero_bubble(int64_t k) {
    if (k < 0 || k >= total_) return;
    const int64_t late = stage_.rank, num_forwards = std::min(total_, warm_up_ + k + 1);
    const int64_t num_weights = std::max<int64_t>(0, k - late);
    const double deferred = passes(0).deferred;
    const double sent = (k > 0 ? sent_backward() : 0);
    if (warm_up_ + k < total_) {
      StageMoment forward = in_flight(warm_up_ + k, k);
      forward.activations += static_cast<double>(k - num_weights) * deferred + passes(0).forward.activations;
      forward.transient += passes(0).forward.transient;
      forward.logits += passes(0).forward.logits;
      forward.pipeline = gradient_of(k) + (warm_up_ + k > 0 ? sent_forward() : 0) + sent;
      keep_larger(forward);
    }
    StageMoment moment = in_flight(num_forwards, k);
    moment.activations += static_cast<double>(k - num_weights) * deferred;
    add_own_backward(moment, k);
    const bool weights_follow = k >= late;
    const double next = num_forwards < total_ ? input_of(num_forwards) : k + 1 < total_ ? gradient_of(k + 1) : 0;
    moment.pipeline += weights_follow ? 0 : next;
    moment.pipeline += (num_forwards - 1 == k ? 0 : sent_forward()) + sent;
    keep_larger(moment);

    StageMoment weights = in_flight(num_forwards, k + 1);
    weights.activations += static_cast<double>(k - num_weights) * deferred + passes(0).weights.activations;
    weights.transient += passes(0).weights.transient;
    weights.pipeline = (num_forwards - 1 == k ? 0 : sent_forward()) + sent_backward() + next;
    keep_larger(weights);
  }

  const ChunkPasses& passes(int64_t chunk) const { return stage_.chunks[static_cast<size_t>(chunk)]; }
  int64_t chunk_of(int64_t k) const { return vp_ == 1 ? 0 : k % (stage_.pp * vp_) / stage_.pp; }
  int64_t back_chunk_of(int64_t k) const { return vp_ - 1 - chunk_of(k); }
  // Of the first k computations, those of the chunk that is `turn`-th in each group.
  int64_t count(int64_t k, int64_t turn) const {
    if (vp_ == 1) return k;
    const int64_t group = stage_.pp * vp_;
    return k / group * stage_.pp + std::clamp<int64_t>(k % group - turn * stage_.pp, 0, stage_.pp);
  }
  StageMoment in_flight(int64_t num_forwards, int64_t num_backwards) const {
    StageMoment moment;
    for (int64_t chunk = 0; chunk < vp_; ++chunk) {
      const int64_t number = count(num_forwards, chunk) - count(num_backwards, vp_ - 1 - chunk);
      moment.activations += static_cast<double>(number) * passes(chunk).kept;
    }
    return moment;
  }

  bool is_first_rank() const { return stage_.rank == 0; }
  bool is_last_rank() const { return stage_.rank == stage_.pp - 1; }
  double input_of(int64_t k) const { return is_first_rank() && chunk_of(k) == 0 ? 0 : stage_.message_bytes; }
  double gradient_of(int64_t k) const {
    return is_last_rank() && back_chunk_of(k) == vp_ - 1 ? 0 : stage_.message_bytes;
  }
  double sent_forward() const { return is_last_rank() && vp_ == 1 ? 0 : stage_.message_bytes; }
  double sent_backward() const { return is_first_rank() && vp_ == 1 ? 0 : stage_.message_bytes; }

  void keep_larger(const StageMoment& moment) {
    if (moment.total() > most_.total()) most_ = moment;
  }

  const StageOnList& stage_;
  int64_t vp_, total_, warm_up_ = 0;
  StageMoment most_;
};

}  // namespace

StageMoment peak_of_list(const StageOnList& stage) { return List(stage).peak(); }

}  // namespace layline::memory
