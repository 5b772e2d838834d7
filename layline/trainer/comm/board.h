// What ranks tell each other about themselves while they run, and what follows from it. Behind watch.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "layline/trainer/comm/activity.h"

namespace layline::trainer::comm {

// One sign of life.
struct Beat {
  int64_t count = 0;           // grows with every beat
  double state_seconds = 0;    // how long the rank has been in this wait, or computing
  bool is_done = false;        // has ended well: no more beats follow
  bool knows_failure = false;  // has read the run's failure
  int64_t wait_index = 0;      // as Activity::Wait
  int64_t group = 0;
  int64_t call = -1;
  int64_t num_elements = 0;
  int dtype = 0;
  std::string label;  // empty: computing
};

std::string encode(const Beat& beat);
Beat decode(const std::string& text);

// "computing", "in all_reduce of dp".
std::string describe(const Beat& beat);

// Turns what a rank does now into beats.
class BeatMaker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // activity may be null: always computing.
  explicit BeatMaker(const Activity* activity) : activity_(activity) {}
  Beat next(Time now);

 private:
  const Activity* activity_;
  Beat last_;
  Time since_{};
};

// Finds, from beats of all ranks at one look after the other, what cannot end well.
class Judge {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Judge(int64_t rank, std::chrono::milliseconds stale_after) : rank_(rank), stale_after_(stale_after) {}

  // beats: by rank. "" or the failure: a rank other than this one whose beats stand still, or two ranks of a group that
  // wait in different calls as the group's next one.
  std::string look(const std::vector<Beat>& beats, Time now);
  // The first half of look: remembers who has beaten.
  void note(const std::vector<Beat>& beats, Time now);
  // Whether no new beat of rank was noted for so long.
  bool is_silent(size_t rank, Time now, std::chrono::milliseconds time) const { return now - changed_[rank] > time; }

 private:
  std::string find_still(const std::vector<Beat>& beats, Time now) const;

  const int64_t rank_;
  const std::chrono::milliseconds stale_after_;
  std::vector<int64_t> counts_;
  std::vector<Time> changed_;
  Time last_look_{};
};

// Why rank has waited so long: which ranks do not wait for anyone, or what each waits for.
std::string explain_wait(const std::vector<Beat>& beats, int64_t rank);

}  // namespace layline::trainer::comm
