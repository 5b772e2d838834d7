#include "apps/layline_train/observers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "apps/layline/command.h"
#include "apps/layline/terminal.h"
#include "apps/layline_train/interrupt.h"
#include "apps/layline_train/step_line.h"

namespace layline::app {
namespace {

constexpr std::chrono::milliseconds kBetweenLines(100);
constexpr std::chrono::seconds kToEndAfterAFailure(3);

}  // namespace

void RankObserver::before_step() {
  if (!std::exchange(notes_signals_, true)) note_signals();
}

bool RankObserver::wants_stop() { return stop_signal() != 0; }

void RankObserver::on_failure_elsewhere() {
  std::thread([] {
    std::this_thread::sleep_for(kToEndAfterAFailure);
    std::_Exit(kRunFailed);
  }).detach();
}

MainObserver::MainObserver(std::string metrics, const std::string& checkpoints)
    : metrics_path_(std::move(metrics)),
      summary_(metrics_path_, checkpoints),
      style_(text_style()),
      is_terminal_(isatty(STDOUT_FILENO) != 0) {}

void MainObserver::print(const std::string& text) {
  if (!is_read_) return;
  is_read_ = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
}

bool MainObserver::is_time_for_a_line() {
  const Clock::time_point now = Clock::now();
  if (is_terminal_ && now < next_line_) return false;
  next_line_ = now + kBetweenLines;
  return true;
}

void MainObserver::on_banner(const std::string& text) {
  if (!metrics_path_.empty()) metrics_.emplace(metrics_path_);
  print(text + "\n");
}

void MainObserver::on_step(const trainer::loop::StepRecord& record) {
  if (metrics_) metrics_->write(record);
  summary_.add(record);
  const bool must_be_shown = record.step == record.steps || record.validation_loss.has_value();
  if (is_time_for_a_line() || must_be_shown) print(step_line(record, style_) + "\n");
}

void MainObserver::on_message(const std::string& line) { print(line + "\n"); }

void MainObserver::on_end() { print(summary_.text()); }

void QuietObserver::on_message(const std::string& line) { fmt::print(stderr, "rank {}: {}\n", rank_, line); }

std::unique_ptr<trainer::loop::Observer> make_observer(const trainer::config::RunConfig& config,
                                                       const trainer::loop::Launch& launch) {
  if (launch.rank != 0) return std::make_unique<QuietObserver>(launch.rank);
  return std::make_unique<MainObserver>(config.metrics, config.checkpoint.directory);
}

}  // namespace layline::app
