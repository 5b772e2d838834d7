#include "apps/layline_train/interrupt.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace layline::app {
namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t noted_signal = 0;

void note(int signal) { noted_signal = signal; }

}  // namespace

void note_signals() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void ignore_lost_readers() { std::signal(SIGPIPE, SIG_IGN); }

void end_with_parent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) std::raise(SIGTERM);
}

int stop_signal() { return noted_signal; }

}  // namespace layline::app
