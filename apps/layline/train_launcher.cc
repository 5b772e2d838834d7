#include "apps/layline/train_launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <utility>

#include "layline/base/error.h"

extern char** environ;  // NOLINT(readability-identifier-naming): POSIX

namespace layline::app {
namespace {

using Clock = std::chrono::steady_clock;
using sweep::LaunchEnd;

constexpr size_t kMaxErrorBytes = 1 << 20;
constexpr int kPollMilliseconds = 100;
constexpr double kStopCheckSeconds = 0.25;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void append_errors(RankProcess& process, std::string& errors) {
  errors += process.read_errors();
  if (errors.size() > kMaxErrorBytes) errors.erase(0, errors.size() - kMaxErrorBytes);
}

std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::ifstream list(task.path() / "children");
    for (pid_t pid = 0; list >> pid;) pids.push_back(pid);
  }
  return pids;
}

// Kills what a run left behind and came to us. New ones may come as their parents die.
void end_orphans() {
  constexpr int kMaxRounds = 100;
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<pid_t> left = children();
    if (left.empty()) return;
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
}

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

TrainLauncher::TrainLauncher(const SignalQueue& signals, std::string trainer)
    : signals_(signals), trainer_(std::move(trainer)) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

std::vector<std::string> TrainLauncher::arguments_for(const sweep::LaunchRequest& request) const {
  std::vector<std::string> arguments = {std::filesystem::read_symlink("/proc/self/exe").string(), "train",
                                        request.run_file, fmt::format("--nproc={}", request.num_ranks)};
  if (!trainer_.empty()) arguments.push_back("--program=" + trainer_);
  return arguments;
}

sweep::LaunchResult TrainLauncher::launch(const sweep::LaunchRequest& request,
                                          const std::function<bool()>& should_stop) {
  const Clock::time_point start = Clock::now();
  sweep::LaunchResult result;
  RankProcess process(arguments_for(request), environment(), RankProcess::Output::kNone);
  // It starts no rank before it has read the run.
  if (request.memory_limit_bytes) process.limit_memory(*request.memory_limit_bytes);
  int signal = 0;
  result.end = wait_for_end(process, request, should_stop, result.errors, signal);
  if (process.is_running()) end(process, result.errors);
  append_errors(process, result.errors);
  end_orphans();
  result.wall_seconds = seconds_since(start);
  if (result.end == LaunchEnd::kInterrupted) {
    result.code = signal;
    return result;
  }
  const Ending& ending = process.ending();
  if (result.end == LaunchEnd::kExited && ending.is_signal()) result.end = LaunchEnd::kKilled;
  result.code = ending.is_signal() ? ending.signal() : ending.code();
  return result;
}

LaunchEnd TrainLauncher::wait_for_end(RankProcess& process, const sweep::LaunchRequest& request,
                                      const std::function<bool()>& should_stop, std::string& errors,
                                      int& signal) const {
  const Clock::time_point start = Clock::now();
  Clock::time_point last_check = start;
  while (!process.has_ended()) {
    std::vector<pollfd> files = {{signals_.file_descriptor(), POLLIN, 0}};
    if (process.error_pipe() >= 0) files.push_back({process.error_pipe(), POLLIN, 0});
    poll(files.data(), files.size(), kPollMilliseconds);
    for (signal = signals_.next(); signal != 0; signal = signals_.next()) {
      if (signal != SIGCHLD) return LaunchEnd::kInterrupted;
    }
    append_errors(process, errors);
    if (seconds_since(start) > request.time_limit_seconds) return LaunchEnd::kTimeLimit;
    if (seconds_since(last_check) < kStopCheckSeconds) continue;
    last_check = Clock::now();
    if (should_stop()) return LaunchEnd::kStopped;
  }
  return LaunchEnd::kExited;
}

// `layline train` passes a first SIGTERM on and kills its ranks at a second; what hangs even then is killed.
void TrainLauncher::end(RankProcess& process, std::string& errors) const {
  for (const int signal : {SIGTERM, SIGTERM, SIGKILL}) {
    process.send(signal);
    if (wait(process, kEndingSeconds, errors)) return;
  }
  while (!wait(process, kEndingSeconds, errors)) {
  }
}

bool TrainLauncher::wait(RankProcess& process, double seconds, std::string& errors) const {
  const Clock::time_point start = Clock::now();
  while (seconds_since(start) < seconds) {
    if (process.has_ended()) return true;
    append_errors(process, errors);  // lest a full pipe holds it up
    poll(nullptr, 0, kPollMilliseconds / 5);
  }
  return process.has_ended();
}

std::string machine_name() {
  cpu_set_t cores;
  const int num_cores = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  std::string name =
      fmt::format("{}, {} cores, {:.0f} GiB", processor_name(), num_cores, bytes / (1024.0 * 1024 * 1024));
  std::replace(name.begin(), name.end(), ';', ',');
  return name;
}

}  // namespace layline::app
