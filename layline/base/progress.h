// Progress of work that takes more than a moment. Libraries report to a sink that the app gives them; without one they
// stay silent.
//
//   Progress progress(sink, "validating", num_runs);
//   for (…) { …; progress.advance(); }
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "layline/base/text_table.h"

namespace layline::base {

struct ProgressState {
  std::string_view task;  // "validating"
  int64_t num_done = 0;
  int64_t num_total = 0;  // 0: not known
  double elapsed_seconds = 0;
  std::string_view remark;  // "best dp2 tp1 mb4", may be empty
};

class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  // Called by one thread at a time, at most ten times a second.
  virtual void show(const ProgressState& state) = 0;
  // After the last show of a task; called even when there was none.
  virtual void finish() = 0;
};

// Counts from any thread and tells the sink now and then, not before the work has taken `delay`.
class Progress {
 public:
  // sink may be nullptr; it and `task` outlive the object.
  Progress(ProgressSink* sink, std::string_view task, int64_t num_total,
           std::chrono::milliseconds delay = std::chrono::seconds(1));
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void advance(int64_t count = 1, std::string_view remark = "");

 private:
  using Clock = std::chrono::steady_clock;

  ProgressSink* sink_;
  std::string task_;
  int64_t num_total_;
  Clock::time_point start_;
  std::atomic<int64_t> num_done_ = 0;
  std::atomic<Clock::rep> next_show_;
  std::mutex mutex_;
};

// A sink that keeps one line of a terminal up to date: "validating  37 of 60  ██████▏     about 6 min left". `write`
// puts text on the terminal; the app decides whether there is one.
class ProgressLine : public ProgressSink {
 public:
  ProgressLine(std::function<void(std::string_view)> write, TextStyle style);
  void show(const ProgressState& state) override;
  void finish() override;  // wipes the line

 private:
  std::function<void(std::string_view)> write_;
  TextStyle style_;
  bool is_shown_ = false;
};

// The text of the line, at most style.width cells.
std::string progress_text(const ProgressState& state, const TextStyle& style);

}  // namespace layline::base
