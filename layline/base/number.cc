#include "layline/base/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "layline/base/error.h"

namespace layline::base {
namespace {

std::string_view without_zero_fraction(std::string_view text) {
  const size_t point = text.find('.');
  if (point == std::string_view::npos || point == 0 || point + 1 == text.size()) return text;
  const bool only_zeros = text.find_first_not_of('0', point + 1) == std::string_view::npos;
  return only_zeros ? text.substr(0, point) : text;
}

// Long or binary texts would drown the message.
std::string shown(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string result;
  for (const char c : text.substr(0, kShown)) result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return text.size() > kShown ? result + "…" : result;
}

std::string range_text(double lower, double upper) {
  constexpr double kMax = std::numeric_limits<double>::max();
  if (lower == std::numeric_limits<double>::min() && upper == kMax) return "a number above 0";
  if (upper == kMax) return fmt::format("a number from {} on", lower);
  return fmt::format("a number from {} to {}", lower, upper);
}

template <typename T>
std::optional<T> parsed(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  T value = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> to_whole_number(std::string_view text) { return parsed<int64_t>(without_zero_fraction(text)); }

std::optional<double> to_number(std::string_view text) {
  const std::optional<double> value = parsed<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

int64_t parse_whole_number(std::string_view text, int64_t lower, int64_t upper, std::string_view where) {
  const std::optional<int64_t> value = to_whole_number(text);
  if (value && *value >= lower && *value <= upper) return *value;
  throw InputError(where, fmt::format("found \"{}\", want a whole number from {} to {}", shown(text), lower, upper));
}

double parse_number(std::string_view text, double lower, double upper, std::string_view where) {
  const std::optional<double> value = to_number(text);
  if (value && *value >= lower && *value <= upper) return *value;
  throw InputError(where, fmt::format("found \"{}\", want {}", shown(text), range_text(lower, upper)));
}

}  // namespace layline::base
