#include "apps/layline/supervisor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "apps/layline/command.h"
#include "layline/base/error.h"
#include "layline/base/file.h"

namespace layline::app {
namespace {

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, signal);
  return signals;
}

// "9 (SIGKILL)".
std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("{}", signal) : fmt::format("{} (SIG{})", signal, name);
}

// Whether an error line speaks of the rank.
bool is_error_about(const std::string& line, int64_t rank) {
  const std::string name = fmt::format("rank {}", rank);
  if (!line.starts_with("error: ")) return false;
  for (size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) {
    if (std::isdigit(static_cast<unsigned char>(line[at + name.size()])) == 0) return true;
  }
  return false;
}

// Lines without those in which other ranks tell of the one whose death was already said.
std::string without_echoes(const std::string& lines, std::optional<int64_t> said_rank) {
  if (!said_rank) return lines;
  std::string kept;
  for (size_t start = 0; start < lines.size();) {
    const size_t end = lines.find('\n', start) + 1;
    const std::string line = lines.substr(start, end - start);
    if (!is_error_about(line, *said_rank)) kept += line;
    start = end;
  }
  return kept;
}

}  // namespace

SignalQueue::SignalQueue() {
  // A parent may have had them ignored, and ignored signals never wait.
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) std::signal(signal, SIG_DFL);
  const sigset_t signals = watched_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  file_descriptor_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (file_descriptor_ < 0) throw base::RunError("signals", std::strerror(errno));
}

SignalQueue::~SignalQueue() { close(file_descriptor_); }

int SignalQueue::next() const {
  signalfd_siginfo info = {};
  return read(file_descriptor_, &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

int Supervisor::run(const std::vector<std::string>& arguments, int64_t num_ranks) {
  start(arguments, num_ranks);
  while (is_any_running()) {
    wait_for_news();
    obey_signals();  // before looking, so that no ending goes unseen behind a SIGCHLD that was read
    pass_errors_on();
    look_for_endings();
    shorten_grace();
    enforce_deadlines();
  }
  pass_errors_on();
  return exit_code();
}

void Supervisor::start(const std::vector<std::string>& arguments, int64_t num_ranks) {
  std::signal(SIGPIPE, SIG_IGN);  // whoever reads standard error may go away
  const int port = free_port();
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    ranks_.push_back(std::make_unique<RankProcess>(arguments, rank_environment(rank, num_ranks, port)));
  }
}

bool Supervisor::is_any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->is_running(); });
}

void Supervisor::wait_for_news() const {
  std::vector<pollfd> files = {{signals_.file_descriptor(), POLLIN, 0}};
  for (const auto& rank : ranks_) {
    if (rank->error_pipe() >= 0) files.push_back({rank->error_pipe(), POLLIN, 0});
  }
  int timeout_ms = -1;
  if (deadline_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now());
    timeout_ms = static_cast<int>(std::max<int64_t>(0, left.count()));
  }
  poll(files.data(), files.size(), timeout_ms);
}

void Supervisor::pass_errors_on() {
  for (const auto& rank : ranks_) {
    const std::string lines = without_echoes(rank->read_errors(), said_rank_);
    if (lines.empty()) continue;
    is_reason_said_ = is_reason_said_ || lines.starts_with("error: ") || lines.find("\nerror: ") != std::string::npos;
    try {
      base::write_fully(STDERR_FILENO, lines, "standard error");
    } catch (const base::RunError&) {
      // Nobody reads it any more; that is no reason to end a run.
    }
  }
}

void Supervisor::look_for_endings() {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!ranks_[rank]->has_ended()) continue;
    pass_errors_on();
    note_failure(rank);
  }
}

void Supervisor::note_failure(size_t rank) {
  const Ending& ending = ranks_[rank]->ending();
  if (!ending.is_signal() && (ending.code() == 0 || ending.code() == kSignalled + interrupt_)) return;
  if (!deadline_) set_deadline(grace_seconds_);
  if (is_reason_said_ || is_terminating_ || interrupt_ != 0) return;
  if (ending.is_signal()) {
    say(fmt::format("rank {} was killed by signal {}", rank, signal_text(ending.signal())));
    said_rank_ = static_cast<int64_t>(rank);
  } else if (ending.code() != kRunFailed && ending.code() != kBadInput) {
    say(fmt::format("rank {} ended with exit code {}", rank, ending.code()));
  }
}

void Supervisor::obey_signals() {
  for (int signal = signals_.next(); signal != 0; signal = signals_.next()) {
    if (signal == SIGCHLD) continue;
    if (interrupt_ == 0) {
      interrupt_ = signal;
      send_all(signal);
    } else {
      is_terminating_ = true;
      send_all(SIGKILL);
    }
  }
}

void Supervisor::enforce_deadlines() {
  if (!deadline_ || Clock::now() < *deadline_) return;
  send_all(is_terminating_ ? SIGKILL : SIGTERM);
  is_terminating_ = true;
  set_deadline(kTerminationSeconds);
}

// Nobody has to be waited for to learn the reason.
void Supervisor::shorten_grace() {
  if (!deadline_ || !is_reason_said_ || is_terminating_) return;
  const std::optional<Clock::time_point> before = deadline_;
  set_deadline(kSaidGraceSeconds);
  deadline_ = std::min(*deadline_, *before);
}

void Supervisor::set_deadline(double seconds) {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Supervisor::send_all(int signal) const {
  for (const auto& rank : ranks_) rank->send(signal);
}

void Supervisor::say(const std::string& line) {
  fmt::print(stderr, "error: {}\n", line);
  is_reason_said_ = true;
}

int Supervisor::exit_code() {
  bool is_bad_input = false, is_failed = false, is_killed = false;
  size_t first_failed = 0;
  for (size_t rank = ranks_.size(); rank-- > 0;) {
    const Ending& ending = ranks_[rank]->ending();
    is_killed = is_killed || ending.is_signal();
    if (ending.is_signal() || ending.code() == 0 || ending.code() == kSignalled + interrupt_) continue;
    first_failed = rank;
    is_failed = true;
    is_bad_input = is_bad_input || ending.code() == kBadInput;
  }
  // After an interrupt a rank that was killed makes others fail.
  if (interrupt_ != 0 && (is_killed || !is_failed)) return kSignalled + interrupt_;
  if (is_failed && !is_reason_said_) {
    say(fmt::format("rank {} ended with exit code {} and did not say why", first_failed,
                    ranks_[first_failed]->ending().code()));
  }
  if (is_bad_input) return kBadInput;
  return is_failed || is_killed ? kRunFailed : 0;
}

}  // namespace layline::app
