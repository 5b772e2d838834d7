// The ranks of a run on this machine, from start to end: when one fails, all end soon, and the user is told which and
// why.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/layline/rank_process.h"

namespace layline::app {

// SIGINT, SIGTERM and SIGCHLD of this process as a file that can be polled. From its construction on they wait to be
// read; make it before there are other threads.
class SignalQueue {
 public:
  SignalQueue();  // throws base::RunError
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  ~SignalQueue();

  int file_descriptor() const { return file_descriptor_; }
  // The next one that waits; 0: none.
  int next() const;

 private:
  int file_descriptor_ = -1;
};

// A rank that fails, or is killed, gives the others grace_seconds to say why and to end by themselves, and once the
// reason is said kSaidGraceSeconds at most; then they are terminated, and after kTerminationSeconds killed. A first
// SIGINT or SIGTERM is passed on to the ranks, which end when they have saved; a second kills them.
class Supervisor {
 public:
  static constexpr double kGraceSeconds = 8;
  static constexpr double kSaidGraceSeconds = 4;
  static constexpr double kTerminationSeconds = 1;

  explicit Supervisor(const SignalQueue& signals, double grace_seconds = kGraceSeconds)
      : signals_(signals), grace_seconds_(grace_seconds) {}

  // Starts `arguments` (the first is the program) num_ranks times and returns when all have ended, with the exit code
  // of the run: 0, 1 (a rank failed), 2 (a rank said that the user can mend it), 130 or 143 (interrupted). What ranks
  // write to standard error is passed on line by line.
  int run(const std::vector<std::string>& arguments, int64_t num_ranks);

 private:
  using Clock = std::chrono::steady_clock;

  void start(const std::vector<std::string>& arguments, int64_t num_ranks);
  bool is_any_running() const;
  void wait_for_news() const;
  void pass_errors_on();
  void look_for_endings();
  void note_failure(size_t rank);
  void obey_signals();
  void enforce_deadlines();
  void shorten_grace();
  void set_deadline(double seconds);
  void send_all(int signal) const;
  void say(const std::string& line);
  int exit_code();

  const SignalQueue& signals_;
  double grace_seconds_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::optional<Clock::time_point> deadline_;  // of those that still run
  bool is_terminating_ = false;                // by us
  bool is_reason_said_ = false;                // an "error: " line was passed on, or said
  std::optional<int64_t> said_rank_;           // that was killed, as we said
  int interrupt_ = 0;                          // the signal that was passed on
};

}  // namespace layline::app
