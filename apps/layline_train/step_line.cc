#include "apps/layline_train/step_line.h"

#include <fmt/format.h>

#include "layline/base/units.h"

namespace layline::app {

std::string step_line(const trainer::metrics::StepRecord& record, const base::TextStyle& style) {
  const std::string steps = fmt::format("{}", record.steps);
  const std::string unknown = style.unicode ? "–" : "-";
  const std::string mfu = record.mfu ? base::format_percent(*record.mfu) : unknown;
  std::string line = fmt::format("step {:>{}}/{}  loss {:<7.4f}  norm {:<7.4g}  lr {:.2e}  {:>9} tok/s  MFU {:>6}",
                                 record.step, steps.size(), steps, record.loss, record.grad_norm, record.learning_rate,
                                 base::format_number(record.tokens_per_second), mfu);
  line += fmt::format("  {:>5} GiB  ETA {}", base::format_gib(static_cast<double>(record.peak_memory_bytes), 2),
                      base::format_seconds(record.eta_seconds));
  if (record.validation_loss) line += fmt::format("  valid {:.4f}", *record.validation_loss);
  return line;
}

}  // namespace layline::app
