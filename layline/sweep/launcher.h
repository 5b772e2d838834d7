// Starts the ranks of a run and waits for their end. The app gives one: libraries start no processes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace layline::sweep {

struct LaunchRequest {
  std::string run_file;  // RUN.json
  int64_t num_ranks = 1;
  double time_limit_seconds = 0;
  // Of private memory that a process may hold; beyond it allocations fail. A net behind the run's own limit.
  std::optional<int64_t> memory_limit_bytes = std::nullopt;
};

enum class LaunchEnd {
  kExited,       // by itself, with an exit code
  kKilled,       // by a signal that was not ours
  kTimeLimit,    // ended by us, after the time limit
  kStopped,      // ended by us, since should_stop said so
  kInterrupted,  // ended by us, since the user wants to stop
};

struct LaunchResult {
  LaunchEnd end = LaunchEnd::kExited;
  int code = 0;        // exit code, or the signal that killed it or interrupted us
  std::string errors;  // what the ranks wrote to standard error, the last of it where it is long
  double wall_seconds = 0;
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Returns when no process of the run is left. `should_stop` is asked several times a second. Throws base::RunError
  // when nothing can be started.
  virtual LaunchResult launch(const LaunchRequest& request, const std::function<bool()>& should_stop) = 0;
};

}  // namespace layline::sweep
