#include "layline/trainer/comm/board.h"

#include <c10/core/ScalarType.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "layline/trainer/comm/call.h"

namespace layline::trainer::comm {

namespace {

// A wait must have lasted so long before a difference between two ranks counts.
constexpr double kSettledSeconds = 1.5;

std::string describe_call(const Beat& beat) {
  return fmt::format("{} with {} elements of {}", beat.label, beat.num_elements,
                     c10::toString(static_cast<c10::ScalarType>(beat.dtype)));
}

bool differ(const Beat& a, const Beat& b) {
  return a.label != b.label || a.num_elements != b.num_elements || a.dtype != b.dtype;
}

std::string find_mismatch(const std::vector<Beat>& beats) {
  std::map<std::pair<int64_t, int64_t>, size_t> first_in_call;
  for (size_t rank = 0; rank < beats.size(); ++rank) {
    const Beat& beat = beats[rank];
    if (beat.label.empty() || beat.call < 0 || beat.state_seconds < kSettledSeconds) continue;
    const auto [place, is_first] = first_in_call.try_emplace({beat.group, beat.call}, rank);
    if (!is_first && differ(beats[place->second], beat)) {
      return fmt::format("rank {} is in {}, but rank {} is in {}", rank, describe_call(beat), place->second,
                         describe_call(beats[place->second]));
    }
  }
  return "";
}

}  // namespace

std::string encode(const Beat& beat) {
  return fmt::format("{} {:.1f} {:d} {:d} {} {} {} {} {} {}", beat.count, beat.state_seconds, beat.is_done,
                     beat.knows_failure, beat.wait_index, beat.group, beat.call, beat.num_elements, beat.dtype,
                     beat.label);
}

Beat decode(const std::string& text) {
  Beat beat;
  std::istringstream in(text);
  in >> beat.count >> beat.state_seconds >> beat.is_done >> beat.knows_failure >> beat.wait_index >> beat.group >>
      beat.call >> beat.num_elements >> beat.dtype;
  in.get();
  std::getline(in, beat.label);
  return beat;
}

std::string describe(const Beat& beat) { return beat.label.empty() ? "computing" : "in " + beat.label; }

Beat BeatMaker::next(Time now) {
  const Activity::Wait wait = activity_ ? activity_->now() : Activity::Wait{};
  Beat beat;
  beat.count = last_.count + 1;
  if (wait.label) {
    beat.label = wait.label;
    beat.group = wait.group;
    beat.call = wait.call;
    beat.num_elements = wait.num_elements;
    beat.dtype = wait.dtype;
  }
  beat.wait_index = wait.index;
  const bool is_same = beat.wait_index == last_.wait_index && beat.label.empty() == last_.label.empty();
  if (!is_same || last_.count == 0) since_ = now;
  beat.state_seconds = std::chrono::duration<double>(now - since_).count();
  last_ = beat;
  return beat;
}

void Judge::note(const std::vector<Beat>& beats, Time now) {
  counts_.resize(beats.size());
  changed_.resize(beats.size(), now);
  // After a pause of its own, as when this process was stopped, everyone gets a new chance.
  if (now - last_look_ > stale_after_ / 2) std::fill(changed_.begin(), changed_.end(), now);
  last_look_ = now;
  for (size_t rank = 0; rank < beats.size(); ++rank) {
    if (beats[rank].count == counts_[rank]) continue;
    counts_[rank] = beats[rank].count;
    changed_[rank] = now;
  }
}

std::string Judge::look(const std::vector<Beat>& beats, Time now) {
  note(beats, now);
  const std::string still = find_still(beats, now);
  return still.empty() ? find_mismatch(beats) : still;
}

std::string Judge::find_still(const std::vector<Beat>& beats, Time now) const {
  for (size_t rank = 0; rank < beats.size(); ++rank) {
    if (static_cast<int64_t>(rank) == rank_ || beats[rank].is_done || !is_silent(rank, now, stale_after_)) continue;
    return fmt::format("rank {}: no sign of life for {:.1f} s: killed, stopped or cut off while {}", rank,
                       std::chrono::duration<double>(now - changed_[rank]).count(), describe(beats[rank]));
  }
  return "";
}

std::string explain_wait(const std::vector<Beat>& beats, int64_t rank) {
  std::vector<std::string> busy, waiting;
  for (size_t other = 0; other < beats.size(); ++other) {
    const Beat& beat = beats[other];
    if (static_cast<int64_t>(other) == rank) continue;
    if (beat.is_done) {
      busy.push_back(fmt::format("rank {} has ended", other));
    } else if (beat.label.empty()) {
      busy.push_back(fmt::format("rank {} has been computing for {:.0f} s", other, beat.state_seconds));
    } else {
      waiting.push_back(fmt::format("rank {} is {}", other, describe(beat)));
    }
  }
  if (!busy.empty()) return fmt::format("{}", fmt::join(busy, ", "));
  return fmt::format("all ranks wait for each other: {}", fmt::join(waiting, ", "));
}

}  // namespace layline::trainer::comm
