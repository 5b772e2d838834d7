#include "apps/layline/rank_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "layline/base/error.h"

extern char** environ;  // NOLINT(readability-identifier-naming): POSIX

namespace layline::app {
namespace {

constexpr int kCannotStart = 127;

std::string reason() { return std::strerror(errno); }

int64_t num_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

bool is_of_another_launcher(const std::string& entry) {
  for (const char* prefix : {"SLURM_PROCID=", "SLURM_NTASKS=", "SLURM_LOCALID=", "OMPI_COMM_WORLD_", "TORCHELASTIC_"}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

bool is_set(const std::vector<std::string>& environment, const std::string& name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const std::string& entry) { return entry.starts_with(name + "="); });
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec: nothing here may allocate.
[[noreturn]] void become(char** arguments, char** environment, int error_end, RankProcess::Output output,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotStart);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  if (nothing >= 0 && output == RankProcess::Output::kNone) dup2(nothing, STDOUT_FILENO);
  dup2(error_end, STDERR_FILENO);
  execve(arguments[0], arguments, environment);
  for (const char* text :
       {"error: cannot start ", static_cast<const char*>(arguments[0]), ": ", strerrordesc_np(errno), "\n"}) {
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  }
  _exit(kCannotStart);
}

}  // namespace

std::vector<std::string> rank_environment(int64_t rank, int64_t num_ranks, int master_port) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_of_another_launcher(*entry)) environment.emplace_back(*entry);
  }
  const std::string index = fmt::format("{}", rank), size = fmt::format("{}", num_ranks);
  set(environment, "RANK", index);
  set(environment, "LOCAL_RANK", index);
  set(environment, "WORLD_SIZE", size);
  set(environment, "LOCAL_WORLD_SIZE", size);
  set(environment, "MASTER_ADDR", "127.0.0.1");
  set(environment, "MASTER_PORT", fmt::format("{}", master_port));
  if (!is_set(environment, "OMP_NUM_THREADS")) {
    set(environment, "OMP_NUM_THREADS", fmt::format("{}", std::max<int64_t>(1, num_cores() / num_ranks)));
  }
  // The recorder crashes with several groups in a process, and nobody reads it.
  if (!is_set(environment, "TORCH_FR_BUFFER_SIZE")) set(environment, "TORCH_FR_BUFFER_SIZE", "0");
  return environment;
}

void become(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::fflush(nullptr);
  execve(arguments.front().c_str(), pointers(arguments).data(), pointers(environment).data());
  throw base::RunError("cannot start " + arguments.front(), reason());
}

int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      listener >= 0 && bind(listener, generic, length) == 0 && getsockname(listener, generic, &length) == 0;
  const std::string why = reason();
  if (listener >= 0) close(listener);
  if (!found) throw base::RunError("loopback", fmt::format("has no free port: {}", why));
  return ntohs(address.sin_port);
}

bool Ending::is_signal() const { return WIFSIGNALED(status); }
int Ending::code() const { return WEXITSTATUS(status); }
int Ending::signal() const { return WTERMSIG(status); }

RankProcess::RankProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                         Output output) {
  std::array<int, 2> ends = {-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw base::RunError(arguments[0], "cannot start: " + reason());
  error_pipe_ = ends[0];
  fcntl(error_pipe_, F_SETFL, O_NONBLOCK);
  start(arguments, environment, ends[1], output);
  const std::string why = reason();
  close(ends[1]);
  if (is_running_) return;
  close(error_pipe_);
  throw base::RunError(arguments[0], "cannot start: " + why);
}

// Signals wait while there are two of us, so that none of ours is noticed by the child.
void RankProcess::start(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                        int error_end, Output output) {
  const std::vector<char*> argument_pointers = pointers(arguments), environment_pointers = pointers(environment);
  const pid_t parent = getpid();
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pid_ = fork();
  if (pid_ == 0) {
    become(const_cast<char**>(argument_pointers.data()), const_cast<char**>(environment_pointers.data()), error_end,
           output, parent);
  }
  const int why = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  is_running_ = pid_ > 0;
  if (is_running_) setpgid(pid_, pid_);  // whichever of the two comes first
  errno = why;
}

RankProcess::~RankProcess() {
  if (is_running_) {
    send(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (error_pipe_ >= 0) close(error_pipe_);
}

void RankProcess::send(int signal) const {
  if (is_running_) kill(-pid_, signal);
}

void RankProcess::limit_memory(int64_t bytes) const {
  const rlimit limit = {static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  if (is_running_) prlimit(pid_, RLIMIT_DATA, &limit, nullptr);
}

bool RankProcess::has_ended() {
  if (!is_running_) return false;
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return false;
  // While its leader is not reaped, the group's number is nobody else's.
  send(SIGKILL);
  waitpid(pid_, &ending_.status, 0);
  is_running_ = false;
  return true;
}

std::string RankProcess::read_errors() {
  std::array<char, 4096> buffer;
  while (error_pipe_ >= 0) {
    const ssize_t count = read(error_pipe_, buffer.data(), buffer.size());
    if (count > 0) {
      line_.append(buffer.data(), static_cast<size_t>(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
      close(error_pipe_);
      error_pipe_ = -1;
      if (!line_.empty() && line_.back() != '\n') line_ += '\n';
    } else if (errno == EAGAIN) {
      break;
    }
  }
  const size_t end = line_.rfind('\n') + 1;
  std::string lines = line_.substr(0, end);
  line_.erase(0, end);
  return lines;
}

}  // namespace layline::app
