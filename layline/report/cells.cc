#include "layline/report/cells.h"

#include <fmt/format.h>

#include <cmath>

#include "layline/base/units.h"
#include "layline/calibrate/predict.h"

namespace layline::report {
namespace {

constexpr int kSignificantDigits = 5;

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int digits = kSignificantDigits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  if (digits < -300 || digits > 300) return value;
  const double scale = std::pow(10.0, std::abs(digits));
  return digits >= 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

}  // namespace

std::string seconds_cell(const std::optional<double>& seconds) {
  if (!seconds) return kNone;
  if (*seconds < 1) return fmt::format("{:.4f}", *seconds);
  return base::format_number(*seconds, *seconds < 1000 ? 2 : 0);
}

std::string percent_cell(const std::optional<double>& fraction, int decimals) {
  return fraction ? base::format_percent_number(*fraction, decimals) : kNone;
}

std::string signed_percent_cell(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:+.1f}", 100 * *fraction) : kNone;
}

std::string gib_cell(const std::optional<double>& bytes) { return bytes ? base::format_gib(*bytes) : kNone; }

std::string count_cell(int64_t count) { return base::format_count(count); }

TableColumn text_column(const std::string& title, const std::string& filter_field) {
  return {.title = title, .is_number = false, .filter_field = filter_field};
}

TableColumn number_column(const std::string& title, const std::string& filter_field) {
  return {.title = title, .is_number = true, .filter_field = filter_field};
}

std::optional<double> predicted_seconds(const ReportRun& run) {
  if (!run.prediction) return std::nullopt;
  return run.prediction->step_seconds;
}

std::optional<double> predicted_bytes(const ReportRun& run) {
  if (!run.prediction) return std::nullopt;
  switch (calibrate::memory_rank_of(*run.record)) {
    case calibrate::MemoryRank::kFirst:
      return run.prediction->first_stage_bytes;
    case calibrate::MemoryRank::kLast:
      return run.prediction->last_stage_bytes;
    case calibrate::MemoryRank::kMax:
      break;
  }
  return run.prediction->max_bytes;
}

nlohmann::json number_or_null(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return nullptr;
  return rounded(*value);
}

}  // namespace layline::report
