#include "layline/base/progress.h"

#include <fmt/format.h>

#include "layline/base/units.h"

namespace layline::base {
namespace {

constexpr std::chrono::milliseconds kInterval(100);

std::string remaining_text(const ProgressState& state) {
  if (state.num_done <= 0 || state.num_total <= state.num_done) return "";
  const double seconds = state.elapsed_seconds / static_cast<double>(state.num_done) *
                         static_cast<double>(state.num_total - state.num_done);
  constexpr double kMinute = 60;
  const double rounded = seconds < kMinute ? std::max(seconds, 1.0) : seconds;
  if (rounded < kMinute) return fmt::format("about {:.0f} s left", rounded);
  if (rounded < 90 * kMinute) return fmt::format("about {:.0f} min left", rounded / kMinute);
  return fmt::format("about {:.0f} h left", rounded / (60 * kMinute));
}

}  // namespace

Progress::Progress(ProgressSink* sink, std::string_view task, int64_t num_total, std::chrono::milliseconds delay)
    : sink_(sink),
      task_(task),
      num_total_(num_total),
      start_(Clock::now()),
      next_show_((start_ + delay).time_since_epoch().count()) {}

Progress::~Progress() {
  if (sink_ != nullptr) sink_->finish();
}

void Progress::advance(int64_t count, std::string_view remark) {
  const int64_t num_done = num_done_.fetch_add(count) + count;
  if (sink_ == nullptr) return;
  const Clock::time_point now = Clock::now();
  if (now.time_since_epoch().count() < next_show_.load()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  next_show_ = (now + kInterval).time_since_epoch().count();
  sink_->show({task_, num_done, num_total_, std::chrono::duration<double>(now - start_).count(), remark});
}

ProgressLine::ProgressLine(std::function<void(std::string_view)> write, TextStyle style)
    : write_(std::move(write)), style_(style) {}

void ProgressLine::show(const ProgressState& state) {
  // One cell stays free: a full line would wrap, and then could not be rewritten.
  const TextStyle narrower{style_.width - 1, style_.unicode};
  write_("\r" + progress_text(state, narrower) + "\x1b[K");
  is_shown_ = true;
}

void ProgressLine::finish() {
  if (is_shown_) write_("\r\x1b[K");
  is_shown_ = false;
}

std::string progress_text(const ProgressState& state, const TextStyle& style) {
  constexpr int kBarCells = 20;
  std::string text(state.task);
  if (state.num_total > 0) {
    text += fmt::format("  {} of {}  ", format_count(state.num_done), format_count(state.num_total));
    text += bar(static_cast<double>(state.num_done) / static_cast<double>(state.num_total), kBarCells, style, true);
  } else {
    text += fmt::format("  {}", format_count(state.num_done));
  }
  const std::string remaining = remaining_text(state);
  if (!remaining.empty()) text += "  " + remaining;
  if (!state.remark.empty()) text.append("  ").append(state.remark);
  return shorten(text, style.width, style);
}

}  // namespace layline::base
