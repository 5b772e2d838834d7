#include "apps/layline_train/step_line.h"

#include <fmt/format.h>

#include <vector>

#include "layline/base/units.h"

namespace layline::app {
namespace {

constexpr int kEtaWidth = 15;  // "ETA 23 h 59 min"

// One part of the line, of a width that does not depend on the step.
struct Part {
  std::string text;
  int drop_order;  // 0: never; else left out when the line is too wide, the highest first
};

int width_of(const std::vector<Part>& parts, int dropped_from) {
  int width = kEtaWidth;
  for (const Part& part : parts) {
    if (part.drop_order < dropped_from) width += base::display_width(part.text) + 2;
  }
  return width;
}

}  // namespace

std::string step_line(const trainer::metrics::StepRecord& record, const base::TextStyle& style) {
  const std::string steps = fmt::format("{}", record.steps);
  const std::string mfu = record.mfu ? base::format_percent(*record.mfu) : style.unicode ? "–" : "-";
  const std::vector<Part> parts = {
      {fmt::format("step {:>{}}/{}", record.step, steps.size(), steps), 0},
      {fmt::format("loss {:<7.4f}", record.loss), 0},
      {fmt::format("norm {:<8.3g}", record.grad_norm), 1},
      {fmt::format("lr {:.1e}", record.learning_rate), 2},
      {fmt::format("{:>9} tok/s", base::format_number(record.tokens_per_second)), 0},
      {fmt::format("MFU {:>6}", mfu), record.mfu ? 0 : 3},
      {fmt::format("{:>5} GiB", base::format_gib(static_cast<double>(record.peak_memory_bytes), 2)), 0}};
  int dropped_from = 4;
  while (dropped_from > 1 && width_of(parts, dropped_from) > style.width) --dropped_from;
  std::string line;
  for (const Part& part : parts) {
    if (part.drop_order < dropped_from) line += part.text + "  ";
  }
  line += fmt::format("ETA {}", base::format_seconds(record.eta_seconds));
  if (record.validation_loss) line += fmt::format("  valid {:.4f}", *record.validation_loss);
  return line;
}

}  // namespace layline::app
