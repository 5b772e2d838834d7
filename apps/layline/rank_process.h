// A rank as a child process: started with its environment, its standard error read, its end waited for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace layline::app {

// The current environment with these variables set, and without those that other launchers set for their ranks.
std::vector<std::string> rank_environment(int64_t rank, int64_t num_ranks, int master_port);

// A TCP port of the loopback that nobody uses at the moment.
int free_port();

// Goes on as this program, whose first argument is its file, in the place of the current one. Throws base::RunError
// when it cannot.
[[noreturn]] void become(const std::vector<std::string>& arguments, const std::vector<std::string>& environment);

// How a process ended, as waitpid() gives it.
struct Ending {
  int status = 0;
  bool is_signal() const;
  int code() const;    // when it is no signal
  int signal() const;  // when it is
};

// Leads a process group of its own, so that what it starts ends with it; and it is killed when this process dies. Its
// standard input is empty, its standard output is ours or goes nowhere.
class RankProcess {
 public:
  enum class Output { kOurs, kNone };

  // Throws base::RunError.
  RankProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
              Output output = Output::kOurs);
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();  // kills what still runs

  bool is_running() const { return is_running_; }
  const Ending& ending() const { return ending_; }  // when it no longer runs
  int error_pipe() const { return error_pipe_; }    // -1: closed

  // To the whole group. Nothing when it no longer runs.
  void send(int signal) const;

  // Of private memory; what it starts from now on inherits it.
  void limit_memory(int64_t bytes) const;

  // Whether it ended since the last call; then its group is gone too. Does not wait.
  bool has_ended();

  // Whole lines from its standard error since the last call, with their ends; what is left when the pipe is closed.
  // Does not wait.
  std::string read_errors();

 private:
  void start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, int error_end,
             Output output);

  pid_t pid_ = -1;
  bool is_running_ = false;
  Ending ending_;
  int error_pipe_ = -1;
  std::string line_;  // that has no end yet
};

}  // namespace layline::app
