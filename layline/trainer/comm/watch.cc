#include "layline/trainer/comm/watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/comm/board.h"

namespace layline::trainer::comm {

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

const std::string kFailedKey = "watch/failed";
const std::string kNone = "none";
// How long rank 0 keeps the board up for others to read a failure, and how often it looks meanwhile.
constexpr milliseconds kSettleLimit{1500};
constexpr milliseconds kSettleInterval{50};

std::string beat_key(int64_t rank) { return fmt::format("watch/beat/{}", rank); }

std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

// What this rank knows, shared by its main thread, the talker, which alone uses the store and may hang in it, and the
// guard, which notices that.
struct Watch::State {
  WatchOptions options;
  int64_t rank = 0;
  int64_t size = 1;
  const Activity* activity = nullptr;
  std::function<void(const Failure&)> on_failure;
  c10::intrusive_ptr<c10d::Store> store;

  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false;
  bool is_reporting = false;          // the main thread handles a failure: no callback
  std::optional<std::string> wanted;  // to be put on the board
  Failure failure;
  bool is_settled = false;  // the failure is known to all that must know it
  bool is_calling = false;  // on_failure runs
  bool is_finishing = false;
  bool is_finished = false;  // the board knows that this rank is done; on rank 0, all are done
  bool is_talking = true;
  Clock::time_point last_answer = Clock::now();
  std::thread talker;
  std::thread guard;

  // Keeps the first failure.
  void learn(const std::string& message, bool is_own) {
    const std::lock_guard lock(mutex);
    if (failure.message.empty()) failure = {message, is_own};
    changed.notify_all();
  }

  // Says that the failure has reached all, and calls back where the main thread does not know of it.
  void settle() {
    bool calls_back = false;
    {
      const std::lock_guard lock(mutex);
      calls_back = !std::exchange(is_settled, true) && !is_reporting && !is_finishing && !is_ending && on_failure;
      is_calling = calls_back;
      changed.notify_all();
    }
    if (!calls_back) return;
    on_failure(failure);
    const std::lock_guard lock(mutex);
    is_calling = false;
    changed.notify_all();
  }

  Failure report(const std::string& reason, milliseconds patience) {
    std::unique_lock lock(mutex);
    is_reporting = true;
    changed.wait_for(lock, patience, [&] { return !failure.message.empty(); });
    const std::string message = fmt::format("rank {}: {}", rank, reason);
    if (failure.message.empty()) wanted = message;
    changed.notify_all();
    changed.wait_for(lock, options.stale_after, [&] { return is_settled || !is_talking; });
    return failure.message.empty() ? Failure{message, true} : failure;
  }
};

namespace {

// The talker's thread.
template <class State>
class Talker {
 public:
  explicit Talker(State& state)
      : state_(state), maker_(state.activity), judge_(state.rank, state.options.stale_after) {}

  void run() {
    while (look_once()) {
      std::unique_lock lock(state_.mutex);
      const bool is_settling = !state_.failure.message.empty() && !state_.is_settled;
      const milliseconds pause = is_settling ? kSettleInterval : state_.options.interval;
      const bool had_wanted = state_.wanted.has_value(), was_finishing = state_.is_finishing;
      state_.changed.wait_for(lock, pause, [&] {
        return state_.is_ending || (!had_wanted && state_.wanted) || (!was_finishing && state_.is_finishing);
      });
    }
  }

 private:
  // One beat and one look. False: no more are needed.
  bool look_once() {
    Beat beat = maker_.next(Clock::now());
    std::optional<std::string> wanted;
    {
      const std::lock_guard lock(state_.mutex);
      if (state_.is_ending) return false;
      wanted = state_.wanted;
      beat.is_done = state_.is_finishing;
      beat.knows_failure = !state_.failure.message.empty();
    }
    state_.store->set(beat_key(state_.rank), encode(beat));
    const std::vector<Beat> beats = read(state_.rank == 0);
    if (!beat.knows_failure) {
      if (wanted) {
        propose(*wanted);
      } else if (!beat.is_done || state_.rank == 0) {
        judge(beat, beats);
      }
      return !mark_finished(beat, beats);
    }
    if (is_known_to_all(beats)) state_.settle();
    return true;
  }

  // The failure, which it learns, and the beats of all ranks, or of rank 0 alone.
  std::vector<Beat> read(bool reads_all) {
    std::vector<std::string> keys = {kFailedKey};
    for (int64_t rank = 0; rank < (reads_all ? state_.size : 1); ++rank) keys.push_back(beat_key(rank));
    const std::vector<std::vector<uint8_t>> values = state_.store->multiGet(keys);
    std::vector<Beat> beats;
    for (size_t i = 1; i < values.size(); ++i) beats.push_back(decode(text_of(values[i])));
    {
      const std::lock_guard lock(state_.mutex);
      state_.last_answer = Clock::now();
    }
    if (text_of(values[0]) != kNone) state_.learn(text_of(values[0]), false);
    return beats;
  }

  void judge(const Beat& own, const std::vector<Beat>& beats) {
    if (state_.rank == 0) {
      const std::string found = judge_.look(beats, Clock::now());
      if (!found.empty()) return propose(found);
    }
    const double limit = std::chrono::duration<double>(state_.options.wait_limit).count();
    if (own.label.empty() || own.state_seconds < limit) return;
    const std::string why = explain_wait(state_.rank == 0 ? beats : read(true), state_.rank);
    propose(fmt::format("rank {} has waited {:g} s {}: {}", state_.rank, limit, describe(own), why));
  }

  void propose(const std::string& message) {
    const std::string now_there = state_.store->compareSet(kFailedKey, kNone, message);
    state_.learn(now_there, now_there == message);
  }

  // Rank 0 waits for the others that live: the board ends with it.
  bool is_known_to_all(const std::vector<Beat>& beats) {
    if (state_.rank != 0) return true;
    const auto now = Clock::now();
    judge_.note(beats, now);
    if (!known_since_) known_since_ = now;
    if (now - *known_since_ > kSettleLimit) return true;
    for (size_t rank = 1; rank < beats.size(); ++rank) {
      const bool is_told = beats[rank].knows_failure || beats[rank].is_done;
      if (!is_told && !judge_.is_silent(rank, now, 3 * state_.options.interval)) return false;
    }
    return true;
  }

  // Whether this rank's talk is over because all went well.
  bool mark_finished(const Beat& own, const std::vector<Beat>& beats) {
    const bool is_over =
        own.is_done &&
        (state_.rank != 0 || std::all_of(beats.begin(), beats.end(), [](const Beat& beat) { return beat.is_done; }));
    const std::lock_guard lock(state_.mutex);
    if (!is_over || !state_.failure.message.empty()) return false;
    state_.is_finished = true;
    state_.changed.notify_all();
    return true;
  }

  State& state_;
  BeatMaker maker_;
  Judge judge_;
  std::optional<Clock::time_point> known_since_;
};

template <class State>
void talk(const std::shared_ptr<State>& state) {
  try {
    Talker<State>(*state).run();
  } catch (const std::exception&) {  // the store's connection is gone
    state->learn("rank 0: gone without a word: its connections closed", state->rank == 1);
    state->settle();
  }
  const std::lock_guard lock(state->mutex);
  state->is_talking = false;
  state->changed.notify_all();
}

// Notices that the store does not answer: a stopped process keeps its connections open.
template <class State>
void guard(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  auto last_look = Clock::now();
  while (!state->is_ending && state->is_talking && state->failure.message.empty()) {
    state->changed.wait_for(lock, state->options.interval);
    const auto now = Clock::now();
    // This process was stopped itself.
    if (now - last_look > state->options.stale_after / 2) state->last_answer = now;
    last_look = now;
    const auto silence = now - state->last_answer;
    if (silence <= state->options.stale_after || state->is_finishing) continue;
    lock.unlock();
    state->learn(fmt::format("rank 0: no sign of life for {:.1f} s: stopped or cut off",
                             std::chrono::duration<double>(silence).count()),
                 state->rank == 1);
    state->settle();
    lock.lock();
  }
}

}  // namespace

Watch::Watch(const RunStore& store, WatchOptions options, const Activity* activity,
             std::function<void(const Failure&)> on_failure)
    : state_(std::make_shared<State>()) {
  State& state = *state_;
  state.options = options;
  state.rank = store.rendezvous().rank;
  state.size = store.rendezvous().world_size;
  state.activity = activity;
  state.on_failure = std::move(on_failure);
  const milliseconds patience = store.rendezvous().timeout;
  state.store = store.connect(patience);
  try {
    if (state.rank == 0) state.store->set(kFailedKey, kNone);
    state.store->set(beat_key(state.rank), encode({}));
    std::vector<std::string> keys = {kFailedKey};
    for (int64_t rank = 0; rank < state.size; ++rank) keys.push_back(beat_key(rank));
    state.store->wait(keys, patience);
  } catch (const std::exception& error) {
    throw base::RunError("failure board", fmt::format("not all ranks came to it ({})", error.what()));
  }
  state.last_answer = Clock::now();
  state.talker = std::thread([shared = state_] { talk(shared); });
  if (state.rank != 0) state.guard = std::thread([shared = state_] { guard(shared); });
}

Watch::~Watch() {
  {
    std::unique_lock lock(state_->mutex);
    // Others must be able to read a failure that this rank brings down the board with.
    if (state_->rank == 0 && !state_->failure.message.empty()) {
      state_->changed.wait_for(lock, 2 * kSettleLimit, [&] { return state_->is_settled || !state_->is_talking; });
    }
    state_->is_ending = true;
    state_->changed.notify_all();
    state_->changed.wait(lock, [&] { return !state_->is_calling; });
    state_->changed.wait_for(lock, 2 * state_->options.interval, [&] { return !state_->is_talking; });
  }
  if (state_->guard.joinable()) state_->guard.join();
  // A talker that hangs in the store of a stopped rank 0 is left behind.
  const std::lock_guard lock(state_->mutex);
  if (state_->is_talking)
    state_->talker.detach();
  else
    state_->talker.join();
}

Failure Watch::report(const std::string& reason) { return state_->report(reason, milliseconds(0)); }

Failure Watch::report_loss(const std::string& reason) { return state_->report(reason, state_->options.grace); }

Failure Watch::finish() {
  std::unique_lock lock(state_->mutex);
  state_->is_finishing = true;
  state_->changed.notify_all();
  const milliseconds limit = state_->rank == 0 ? state_->options.wait_limit : state_->options.stale_after;
  state_->changed.wait_for(lock, limit,
                           [&] { return state_->is_finished || state_->is_settled || !state_->is_talking; });
  return state_->failure;
}

}  // namespace layline::trainer::comm
