// Ranks as forked processes over TCP, for tests that kill and stop them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace layline::trainer::comm {

class ForkedRanks {
 public:
  struct Outcome {
    bool exited = false;  // by itself, with status 0
    std::string text;     // what body returned, or the error it threw
    double seconds = 0;   // from the start
  };

  // Each child runs body(rank, port) and ends. The port is free.
  ForkedRanks(int64_t size, const std::function<std::string(int64_t rank, int port)>& body);
  ~ForkedRanks();  // kills what is left
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;

  void signal(int64_t rank, int number);
  // Waits for one rank; after limit_seconds it kills it and says so in the text.
  Outcome wait(int64_t rank, double limit_seconds = 30);

 private:
  struct Child {
    pid_t process = 0;
    int pipe = -1;
  };
  std::vector<Child> children_;
  double start_seconds_ = 0;
};

// A TCP port that nobody listens on.
int free_port();

}  // namespace layline::trainer::comm
