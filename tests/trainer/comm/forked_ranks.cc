#include "tests/trainer/comm/forked_ranks.h"

#include <ATen/Parallel.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>

#include "layline/trainer/comm/socket.h"

namespace layline::trainer::comm {

namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void run_child(int pipe, const std::function<std::string()>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  at::set_num_threads(1);
  std::string text;
  int status = 0;
  try {
    text = body();
  } catch (const std::exception& error) {
    text = error.what();
    status = 1;
  }
  [[maybe_unused]] const auto written = write(pipe, text.data(), text.size());
  _exit(status);
}

}  // namespace

ForkedRanks::ForkedRanks(int64_t size, const std::function<std::string(int64_t, int)>& body)
    : start_seconds_(now_seconds()) {
  const int port = free_port();
  for (int64_t rank = 0; rank < size; ++rank) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    const pid_t process = fork();
    if (process == 0) run_child(ends[1], [&] { return body(rank, port); });
    close(ends[1]);
    children_.push_back({process, ends[0]});
  }
}

ForkedRanks::~ForkedRanks() {
  for (const Child& child : children_) {
    if (child.process == 0) continue;
    kill(child.process, SIGKILL);
    waitpid(child.process, nullptr, 0);
    close(child.pipe);
  }
}

void ForkedRanks::signal(int64_t rank, int number) { kill(children_[rank].process, number); }

ForkedRanks::Outcome ForkedRanks::wait(int64_t rank, double limit_seconds) {
  Child& child = children_[rank];
  Outcome outcome;
  pollfd readable{child.pipe, POLLIN, 0};
  const bool is_late = poll(&readable, 1, static_cast<int>(limit_seconds * 1000)) == 0;
  if (is_late) kill(child.process, SIGKILL);
  char buffer[4096];
  for (ssize_t length = 0; (length = read(child.pipe, buffer, sizeof(buffer))) > 0;)
    outcome.text.append(buffer, length);
  int status = 0;
  waitpid(child.process, &status, 0);
  close(child.pipe);
  child = {};
  if (is_late) outcome.text += " [did not end in time]";
  outcome.exited = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  outcome.seconds = now_seconds() - start_seconds_;
  return outcome;
}

int free_port() {
  const int socket = listen_on(0, true);
  const int port = port_of(socket);
  close(socket);
  return port;
}

}  // namespace layline::trainer::comm
