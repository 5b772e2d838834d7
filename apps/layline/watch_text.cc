#include "apps/layline/watch_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "layline/base/line_chart.h"
#include "layline/base/units.h"

namespace layline::app {
namespace {

using trainer::metrics::StepRecord;
using Number = WatchedRun::Number;
using Point = WatchedRun::Point;

constexpr size_t kRecentSteps = 20;  // that speed and the time that is left are taken from
constexpr int kLeastLinesOfAChart = 5;

template <typename Item>
void drop_from(std::vector<Item>& items, int64_t step) {
  items.erase(std::lower_bound(items.begin(), items.end(), step,
                               [](const Item& item, int64_t value) { return item.step < value; }),
              items.end());
}

double median_of(const std::vector<Point>& points, double Point::* member) {
  std::vector<double> values;
  for (size_t i = points.size() - std::min(points.size(), kRecentSteps); i < points.size(); ++i) {
    values.push_back(points[i].*member);
  }
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::string loss_text(double loss) { return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "not a number"; }

std::string head(const WatchedRun& run, const std::string& path) {
  const StepRecord& last = run.last();
  std::string text = path;
  if (!last.layout.empty()) text += " · " + last.layout;
  if (last.num_parameters > 0) {
    text += fmt::format(" · {} parameters", base::format_short_count(static_cast<double>(last.num_parameters)));
  }
  return text;
}

std::string place(const WatchedRun& run) {
  const StepRecord& last = run.last();
  std::string text = "step " + base::format_count(last.step);
  if (last.steps > 0) text += " of " + base::format_count(last.steps);
  text += fmt::format(" · {} tokens · lr {:.1e}", base::format_short_count(static_cast<double>(last.tokens)),
                      last.learning_rate);
  if (run.is_done()) return text + " · done";
  if (last.steps == 0) return text;
  const double left = static_cast<double>(last.steps - last.step) * median_of(run.points(), &Point::step_seconds);
  return text + fmt::format(" · about {} left", base::format_seconds(left));
}

std::string numbers(const WatchedRun& run) {
  const StepRecord& last = run.last();
  std::string text = "loss " + loss_text(last.loss);
  if (!run.validation().empty()) {
    const auto best = std::min_element(run.validation().begin(), run.validation().end(),
                                       [](const Number& a, const Number& b) { return a.value < b.value; });
    text += fmt::format(" · valid {} (best {} at step {})", loss_text(run.validation().back().value),
                        loss_text(best->value), base::format_count(best->step));
  }
  text += fmt::format(" · {} tok/s", base::format_number(median_of(run.points(), &Point::tokens_per_second)));
  if (last.mfu) text += fmt::format(" · MFU {}", base::format_percent(*last.mfu));
  return text + fmt::format(" · norm {:.3g}", last.grad_norm);
}

std::string chart(const WatchedRun& run, const char* title, double Point::* member, const base::TextStyle& style,
                  int num_rows) {
  base::LineChart chart;
  for (const Point& point : run.points()) chart.values.push_back(point.*member);
  chart.first = base::format_count(run.points().front().step);
  chart.last = base::format_count(run.points().back().step);
  chart.num_rows = num_rows;
  const std::string text = base::line_chart(chart, style);
  return text.empty() ? "" : std::string(title) + "\n" + text;
}

std::string memory(const StepRecord& last, const base::TextStyle& style) {
  const std::vector<int64_t>& stages = last.peak_memory_bytes_by_stage;
  if (stages.empty()) return "";
  const auto most = static_cast<double>(*std::max_element(stages.begin(), stages.end()));
  std::string text = stages.size() == 1 ? "peak memory " : "peak memory by stage ";
  for (const int64_t bytes : stages) {
    const auto size = static_cast<double>(bytes);
    text += fmt::format(" {}", base::format_bytes(size));
    if (stages.size() > 1) text += " " + base::bar(size / most, 4, style);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string saves(const WatchedRun& run) {
  if (run.saves().empty()) return "";
  const double sum = std::accumulate(run.saves().begin(), run.saves().end(), 0.0,
                                     [](double total, const Number& save) { return total + save.value; });
  return fmt::format("{}, the last at step {}; training was held up for {} in all",
                     run.saves().size() == 1 ? "1 checkpoint" : fmt::format("{} checkpoints", run.saves().size()),
                     base::format_count(run.saves().back().step), base::format_seconds(sum));
}

}  // namespace

void WatchedRun::add(StepRecord record) {
  if (record.step == 1) clear();
  drop_from(points_, record.step);
  drop_from(validation_, record.step);
  drop_from(saves_, record.step);
  points_.push_back({record.step, record.loss, record.tokens_per_second, record.step_seconds});
  if (record.validation_loss) validation_.push_back({record.step, *record.validation_loss});
  if (record.checkpoint_seconds) saves_.push_back({record.step, *record.checkpoint_seconds});
  last_ = std::move(record);
}

void WatchedRun::clear() { *this = WatchedRun(); }

std::string watch_text(const WatchedRun& run, const std::string& path, const base::TextStyle& style, int num_lines) {
  std::string text;
  int left = num_lines;
  const auto add_line = [&](const std::string& line) {
    if (line.empty() || left == 0) return;
    text += base::shorten(line, style.width, style) + "\n";
    --left;
  };
  add_line(head(run, path));
  add_line(place(run));
  add_line(numbers(run));
  add_line(memory(run.last(), style));
  add_line(saves(run));
  constexpr int kLinesAround = 2, kMostRows = 8;
  const int num_charts = left >= 2 * kLeastLinesOfAChart ? 2 : left >= kLeastLinesOfAChart ? 1 : 0;
  if (num_charts == 0 || run.points().size() < 2) return text;
  const int num_rows = std::min(kMostRows, left / num_charts - kLinesAround);
  text += chart(run, "loss", &Point::loss, style, num_rows);
  if (num_charts == 2) text += chart(run, "tokens a second", &Point::tokens_per_second, style, num_rows);
  return text;
}

}  // namespace layline::app
