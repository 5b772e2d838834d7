#include "apps/layline_train/interrupt.h"

#include <csignal>

namespace layline::app {
namespace {

// A signal handler can reach nothing else.
volatile std::sig_atomic_t noted_signal = 0;

void note(int signal) { noted_signal = signal; }

}  // namespace

void install_signal_handlers() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int stop_signal() { return noted_signal; }

}  // namespace layline::app
