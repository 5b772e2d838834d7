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
    add_forward(std::min(warm_up_, total_ - 1));
    add_forward(warm_up_ + 1);
    add_backward(0);
    add_backward(1);
    add_backward(total_ - warm_up_ - 1);
    if (stage_.vp > 1) add_turns();
    if (defers()) add_weights_and_before();
    return most_;
  }

 private:
  // Numbers in flight change their course where the list comes to another run of chunks, forward or backward.
  void add_turns() {
    add_forward(std::min(warm_up_ + period_, total_) - 1);
    add_backward(std::min(period_, total_ - warm_up_) - 1);
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

  // Weight gradients wait for as many micro-batches as the rank's number; with them, what waits changes.
  void add_weights_and_before() {
    for (const int64_t k : {stage_.rank, stage_.rank + 1, total_ - warm_up_ - 1, total_ - warm_up_, total_ - 1}) {
      add_forward(warm_up_ + k);
      add_backward(k);
      add_weights(k);
    }
  }

  void add_forward(int64_t k) {
    if (k < 0 || k >= total_) return;
    const int64_t num_backwards = std::max<int64_t>(0, k - warm_up_);
    StageMoment moment = in_flight(k, num_backwards);
    add_pass(moment, passes(chunk_of(k)).forward);
    const bool forward_follows = k < warm_up_ && k + 1 < total_;
    moment.pipeline = forward_follows ? input_of(k + 1) : gradient_of(num_backwards);
    moment.pipeline += (k > 0 ? sent_forward() : 0) + (num_backwards > 0 ? sent_backward() : 0);
    keep_larger(moment);
  }

  void add_backward(int64_t k) {
    if (k < 0 || k >= total_) return;
    const int64_t num_forwards = std::min(total_, warm_up_ + k + 1);
    const ChunkPasses& own = passes(back_chunk_of(k));
    const double gradient = gradient_of(k);
    StageMoment moment = in_flight(num_forwards, k);
    add_pass(moment, own.backward);
    moment.activations -= own.kept;
    moment.transient -= gradient;
    const bool weights_follow = defers() && k >= stage_.rank;
    moment.pipeline = gradient + (weights_follow ? 0 : posted_after(num_forwards, k + 1));
    moment.pipeline += sent_forward_after(num_forwards, k) + (k > 0 ? sent_backward() : 0);
    keep_larger(moment);
  }

  // The weight gradients after the k-th backward.
  void add_weights(int64_t k) {
    if (k < 0 || k >= total_ || (k < stage_.rank && k + 1 < total_)) return;
    const int64_t num_forwards = std::min(total_, warm_up_ + k + 1);
    StageMoment moment = in_flight(num_forwards, k + 1);
    add_pass(moment, passes(0).weights);
    // Of those that wait, the first is this one.
    if (k < stage_.rank) moment.activations -= passes(0).deferred;
    moment.pipeline = sent_forward_after(num_forwards, k) + sent_backward() + posted_after(num_forwards, k + 1);
    keep_larger(moment);
  }

  static void add_pass(StageMoment& moment, const Moment& pass) {
    moment.activations += pass.activations;
    moment.transient += pass.transient;
    moment.logits += pass.logits;
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
    if (defers()) {
      moment.activations += static_cast<double>(std::min(num_backwards, stage_.rank)) * passes(0).deferred;
    }
    return moment;
  }
  bool defers() const { return stage_.schedule == spec::ScheduleKind::kZeroBubble; }

  // What is received for the computation that comes next.
  double posted_after(int64_t num_forwards, int64_t num_backwards) const {
    if (num_forwards < total_) return input_of(num_forwards);
    return num_backwards < total_ ? gradient_of(num_backwards) : 0;
  }
  // An output is let go when its gradient has come.
  double sent_forward_after(int64_t num_forwards, int64_t k) const {
    return stage_.vp == 1 && num_forwards - 1 == k ? 0 : sent_forward();
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
