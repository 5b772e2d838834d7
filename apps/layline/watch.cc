#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/layline/command.h"
#include "apps/layline/supervisor.h"
#include "apps/layline/terminal.h"
#include "apps/layline/watch_text.h"
#include "layline/base/error.h"
#include "layline/trainer/metrics/follow_metrics.h"
#include "layline/trainer/metrics/metrics_writer.h"

namespace layline::app {
namespace {

constexpr int kMillisecondsBetweenLooks = 500;
constexpr int kDefaultLines = 24;
constexpr const char* kHideCursor = "\x1b[?25l";
constexpr const char* kShowCursor = "\x1b[?25h";

struct WatchFlags {
  std::string path;
  bool once = false, json = false;
};

int terminal_lines() {
  winsize size{};
  const bool is_known = isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return is_known ? size.ws_row : kDefaultLines;
}

// Text that is drawn over the text before.
class Screen {
 public:
  Screen() { print(kHideCursor); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    if (std::fputs(kShowCursor, stdout) >= 0) std::fflush(stdout);
  }
  void show(const std::string& text) {
    const std::string up = num_lines_ > 0 ? fmt::format("\x1b[{}A\r", num_lines_) : "";
    print(up + "\x1b[J" + text);
    num_lines_ = std::count(text.begin(), text.end(), '\n');
  }

 private:
  int64_t num_lines_ = 0;
};

// The signal that ended the wait; 0: none came.
int wait_for_signal(const SignalQueue& signals) {
  pollfd poll_signals = {signals.file_descriptor(), POLLIN, 0};
  ::poll(&poll_signals, 1, kMillisecondsBetweenLooks);
  for (int signal = signals.next(); signal != 0; signal = signals.next()) {
    if (signal == SIGINT || signal == SIGTERM) return signal;
  }
  return 0;
}

void follow(const WatchFlags& flags, WatchedRun& run, trainer::metrics::MetricsFollower& follower) {
  const SignalQueue signals;
  Screen screen;
  while (true) {
    follower.poll();
    const std::string text = run.is_empty() ? fmt::format("waiting for the first step in {}\n", flags.path)
                                            : watch_text(run, flags.path, text_style(), terminal_lines() - 1);
    screen.show(text);
    if (run.is_done()) return;
    if (const int signal = wait_for_signal(signals)) throw Exit{kSignalled + signal};
  }
}

void show_once(const WatchFlags& flags, const WatchedRun& run, bool is_there) {
  if (!is_there) throw base::InputError(flags.path, "there is no such file: RUN.json's \"metrics\" names it");
  if (run.is_empty()) throw base::InputError(flags.path, "has no row of metrics yet");
  if (!flags.json) return print(watch_text(run, flags.path, text_style(), terminal_lines()));
  nlohmann::ordered_json json = {
      {"schema_version", 1}, {"path", flags.path}, {"num_steps", run.points().size()}, {"is_done", run.is_done()}};
  json["last"] = nlohmann::ordered_json::parse(trainer::metrics::to_json_line(run.last()));
  print(json.dump(2) + "\n");
}

void run_watch(const WatchFlags& flags) {
  WatchedRun run;
  trainer::metrics::MetricsFollower follower(
      flags.path, [&run](trainer::metrics::StepRecord record) { run.add(std::move(record)); }, [&run] { run.clear(); });
  if (!flags.once && !flags.json && isatty(STDOUT_FILENO) != 0) return follow(flags, run, follower);
  const bool is_there = follower.poll();
  show_once(flags, run, is_there);
}

}  // namespace

void add_watch(CLI::App& app) {
  auto flags = std::make_shared<WatchFlags>();
  CLI::App* command = app.add_subcommand("watch", "Draw the loss, speed and memory of a run while it trains");
  command->add_option("metrics", flags->path, "the file that RUN.json's \"metrics\" names")
      ->required()
      ->type_name("METRICS");
  command->add_flag("--once", flags->once, "show how it is now, and end; so it is where the output is no terminal");
  command->add_flag("--json", flags->json, "print the last step as JSON, and end");
  command->footer("Example: layline watch metrics.jsonl\nEnds with the run, or with Ctrl-C.");
  command->callback([flags] { run_watch(*flags); });
}

}  // namespace layline::app
