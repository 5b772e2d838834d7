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
      : stage_(stage), total_(stage.micro_batches * stage.vp), period_(stage.pp * stage.vp) {
    const int64_t ahead = stage.pp - stage.rank - 1;
    warm_up_ = std::min(total_, stage.vp == 1 ? ahead : 2 * ahead + (stage.vp - 1) * stage.pp);
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
    add_forward(std::min(warm_up_, total_ - 1));
    add_forward(warm_up_ + 1);
    add_backward(0);
    add_backward(1);
    add_backward(total_ - warm_up_ - 1);
    if (stage_.vp > 1) add_turns();
    return most_;
  }

 private:
  // Numbers in flight change their course where the list comes to another run of chunks, forward or backward.
  void add_turns() {
    for (const ChunkRun& run : stage_.runs) {
      const int64_t start = run.first * stage_.pp;
      const int64_t forward = start + (std::max<int64_t>(0, warm_up_ - start) + period_ - 1) / period_ * period_;
      add_forward(forward - 1);
      add_forward(forward);
      add_backward(forward - warm_up_ - 1);
      const int64_t backward = (stage_.vp - run.first - run.num_chunks) * stage_.pp;
      add_backward(backward - 1);
      add_backward(backward);
      add_forward(backward + warm_up_);
    }
  }

  void add_forward(int64_t k) {
    if (k < 0 || k >= total_) return;
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
    if (k < 0 || k >= total_) return;
    const int64_t num_forwards = std::min(total_, warm_up_ + k + 1);
    StageMoment moment = in_flight(num_forwards, k);
    add_own_backward(moment, k);
    moment.pipeline += num_forwards < total_ ? input_of(num_forwards) : k + 1 < total_ ? gradient_of(k + 1) : 0;
    moment.pipeline += (stage_.vp == 1 && num_forwards - 1 == k ? 0 : sent_forward()) + (k > 0 ? sent_backward() : 0);
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

  const ChunkPasses& passes(int64_t chunk) const {
    const ChunkRun* run = stage_.runs.data();
    while (chunk >= run->first + run->num_chunks) ++run;
    return run->passes;
  }
  int64_t chunk_of(int64_t k) const { return stage_.vp == 1 ? 0 : k % period_ / stage_.pp; }
  int64_t back_chunk_of(int64_t k) const { return stage_.vp - 1 - chunk_of(k); }
  // The first k computations, forward or backward: whole rounds of all chunks, and the begin of one.
  struct Progress {
    int64_t rounds = 0, rest = 0;
  };
  Progress progress(int64_t k) const {
    if (stage_.vp == 1) return {0, k};
    const int64_t rounds = k / period_;
    return {rounds, k - rounds * period_};
  }
  // Of them, those of the chunks that come first in each round.
  int64_t count(const Progress& done, int64_t num_chunks) const {
    if (stage_.vp == 1) return num_chunks * done.rest;
    const int64_t each = num_chunks * stage_.pp;
    return done.rounds * each + std::min(done.rest, each);
  }
  StageMoment in_flight(int64_t num_forwards, int64_t num_backwards) const {
    const Progress forward = progress(num_forwards), backward = progress(num_backwards);
    StageMoment moment;
    for (const ChunkRun& run : stage_.runs) {
      const int64_t end = run.first + run.num_chunks;
      const int64_t number = count(forward, end) - count(forward, run.first) - count(backward, stage_.vp - run.first) +
                             count(backward, stage_.vp - end);
      moment.activations += static_cast<double>(number) * run.passes.kept;
    }
    return moment;
  }

  bool is_first_rank() const { return stage_.rank == 0; }
  bool is_last_rank() const { return stage_.rank == stage_.pp - 1; }
  double input_of(int64_t k) const { return is_first_rank() && chunk_of(k) == 0 ? 0 : stage_.message_bytes; }
  double gradient_of(int64_t k) const {
    return is_last_rank() && back_chunk_of(k) == stage_.vp - 1 ? 0 : stage_.message_bytes;
  }
  double sent_forward() const { return is_last_rank() && stage_.vp == 1 ? 0 : stage_.message_bytes; }
  double sent_backward() const { return is_first_rank() && stage_.vp == 1 ? 0 : stage_.message_bytes; }

  void keep_larger(const StageMoment& moment) {
    if (moment.total() > most_.total()) most_ = moment;
  }

  const StageOnList& stage_;
  int64_t total_, period_, warm_up_ = 0;
  StageMoment most_;
};

}  // namespace

StageMoment peak_of_list(const StageOnList& stage) { return List(stage).peak(); }

}  // namespace layline::memory
