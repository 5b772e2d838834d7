#include "apps/layline_train/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "layline/base/units.h"

namespace layline::app {
namespace {

constexpr double kLeastShare = 0.005;  // of the time, to be named

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += ", ";
    text += part;
  }
  return text;
}

}  // namespace

void RunSummary::add(const trainer::metrics::StepRecord& record) {
  if (num_steps_++ == 0) {
    first_loss_ = record.loss;
    tokens_before_ = record.tokens - std::llround(record.tokens_per_second * record.step_seconds);
  }
  seconds_ += record.step_seconds + record.checkpoint_seconds.value_or(0);
  tokens_per_second_.push_back(record.tokens_per_second);
  if (record.validation_loss && (!best_validation_ || *record.validation_loss < *best_validation_)) {
    best_validation_ = record.validation_loss;
    best_step_ = record.step;
  }
  for (const auto& stage : record.seconds_by_stage) {
    for (const auto& [name, seconds] : stage) seconds_by_name_[name] += seconds;
  }
  last_ = record;
}

std::string RunSummary::time_text() const {
  double sum = 0;
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, seconds] : seconds_by_name_) {
    sum += seconds;
    parts.emplace_back(seconds, name);
  }
  std::sort(parts.rbegin(), parts.rend());
  std::vector<std::string> texts;
  for (auto& [seconds, name] : parts) {
    if (seconds < kLeastShare * sum) break;
    std::replace(name.begin(), name.end(), '_', ' ');
    texts.push_back(fmt::format("{} {}", name, base::format_percent(seconds / sum, 0)));
  }
  return joined(texts);
}

std::string RunSummary::text() const {
  if (num_steps_ == 0) return "";
  const auto row = [](const char* name, const std::string& text) { return fmt::format("  {:<10} {}\n", name, text); };
  const bool is_done = last_.step >= last_.steps;
  std::string text = fmt::format("{} step {} of {}: {}, {} tokens in {}\n", is_done ? "done," : "stopped after",
                                 base::format_count(last_.step), base::format_count(last_.steps),
                                 num_steps_ == 1 ? "1 step" : base::format_count(num_steps_) + " steps",
                                 base::format_count(last_.tokens - tokens_before_), base::format_seconds(seconds_));
  std::string loss = fmt::format("{:.4f} at first, {:.4f} now", first_loss_, last_.loss);
  if (best_validation_) loss += fmt::format("; valid {:.4f} at best, at step {}", *best_validation_, best_step_);
  text += row("loss", loss);
  std::vector<double> speeds = tokens_per_second_;
  std::nth_element(speeds.begin(), speeds.begin() + static_cast<std::ptrdiff_t>(speeds.size() / 2), speeds.end());
  std::string speed = base::format_number(speeds[speeds.size() / 2]) + " tok/s in the middle";
  if (last_.mfu) speed += fmt::format(", MFU {} at the end", base::format_percent(*last_.mfu));
  text += row("speed", speed);
  if (!seconds_by_name_.empty()) text += row("time", time_text());
  std::vector<std::string> stages;
  for (const int64_t bytes : last_.peak_memory_bytes_by_stage) {
    stages.push_back(base::format_bytes(static_cast<double>(bytes)));
  }
  if (!stages.empty()) text += row("memory", joined(stages) + (stages.size() > 1 ? " by stage" : ""));
  if (!metrics_.empty()) text += row("metrics", fmt::format("{}: layline watch {}", metrics_, metrics_));
  if (!is_done && !checkpoints_.empty()) {
    text += row("resume", fmt::format("the same command with --set checkpoint.resume=true ({})", checkpoints_));
  }
  return text;
}

}  // namespace layline::app
