#include "layline/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>
#include <span>

#include "layline/base/error.h"
#include "layline/base/number.h"

namespace layline::base {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 6> kBinaryUnits = {{{"PiB", 1024.0 * 1024 * kGib},
                                               {"TiB", 1024 * kGib},
                                               {"GiB", kGib},
                                               {"MiB", 1024.0 * 1024},
                                               {"KiB", 1024},
                                               {"B", 1}}};
constexpr std::array<Unit, 16> kByteUnits = {{{"", 1},
                                              {"b", 1},
                                              {"k", 1024},
                                              {"kib", 1024},
                                              {"kb", 1e3},
                                              {"m", 1 << 20},
                                              {"mib", 1 << 20},
                                              {"mb", 1e6},
                                              {"g", kGib},
                                              {"gib", kGib},
                                              {"gb", 1e9},
                                              {"t", 1024 * kGib},
                                              {"tib", 1024 * kGib},
                                              {"tb", 1e12},
                                              {"pib", 1024 * 1024 * kGib},
                                              {"pb", 1e15}}};
constexpr std::array<Unit, 9> kTimeUnits = {
    {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}}};
constexpr std::array<Unit, 5> kCountUnits = {{{"", 1}, {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"t", 1e12}}};

// Three significant digits, without turning 999.7 into a fourth.
std::string three_digits(double value) {
  const double size = std::abs(value);
  const int num_decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}", value, num_decimals);
}

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// "4 min 10 s", "5 min": whole `small` units, `per_big` of which make a big one.
std::string two_units(double num_small, int64_t per_big, std::string_view big, std::string_view small) {
  const int64_t total = std::llround(num_small);
  if (total % per_big == 0) return fmt::format("{} {}", total / per_big, big);
  return fmt::format("{} {} {} {}", total / per_big, big, total % per_big, small);
}

std::string short_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  const double size = std::abs(seconds);
  const Unit unit = size >= 0.9995      ? Unit{"s", 1}
                    : size >= 0.9995e-3 ? Unit{"ms", 1e-3}
                    : size >= 0.9995e-6 ? Unit{"µs", 1e-6}
                                        : Unit{"ns", 1e-9};
  return fmt::format("{} {}", without_trailing_zeros(three_digits(seconds / unit.factor)), unit.name);
}

std::string with_separators(std::string digits) {
  const size_t begin = digits.starts_with('-') ? 1 : 0;
  size_t position = std::min(digits.find('.'), digits.size());
  while (position > begin + 3) digits.insert(position -= 3, 1, ',');
  return digits;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// A number and a unit, with or without a blank between them; nothing when `text` is not that.
std::optional<double> number_with_unit(std::string_view text, std::span<const Unit> units) {
  size_t length = text.size();
  while (length > 0 && std::isalpha(static_cast<unsigned char>(text[length - 1])) != 0) --length;
  const std::string unit_name = lower_case(text.substr(length));
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit_name; });
  std::string_view number = text.substr(0, length);
  if (number.ends_with(' ') && !unit_name.empty()) number.remove_suffix(1);
  const std::optional<double> value = to_number(number);
  if (unit == units.end() || !value) return std::nullopt;
  const double result = *value * unit->factor;
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

// The text without its commas if they part groups of three digits, else unchanged.
std::string without_separators(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ',');
  const std::optional<int64_t> value = to_whole_number(digits);
  return value && format_count(*value) == text ? digits : std::string(text);
}

}  // namespace

std::string format_gib(double bytes, int num_decimals) { return format_number(bytes / kGib, num_decimals); }

std::string format_bytes(double bytes) {
  const auto unit = std::find_if(kBinaryUnits.begin(), kBinaryUnits.end() - 1,
                                 [&](const Unit& u) { return std::abs(bytes) >= u.factor * 0.9995; });
  const double value = bytes / unit->factor;
  const int num_decimals = unit->name == "B" || std::abs(value) >= 999.5 ? 0 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{} {}", without_trailing_zeros(format_number(value, num_decimals)), unit->name);
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  const double size = std::abs(seconds);
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  if (size < 99.95) return short_seconds(seconds);
  if (size < kHour - 0.5) return two_units(seconds, 60, "min", "s");
  if (size < 2 * kDay) return two_units(seconds / kMinute, 60, "h", "min");
  return fmt::format("{} days", format_number(seconds / kDay, size < 100 * kDay ? 1 : 0));
}

std::string format_count(int64_t count) { return with_separators(fmt::format("{}", count)); }

std::string format_number(double value, int num_decimals) {
  if (!std::isfinite(value)) return "–";
  return with_separators(fmt::format("{:.{}f}", value, num_decimals));
}

std::string format_short_count(double count) {
  constexpr std::array<Unit, 4> kUnits = {{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"K", 1e3}}};
  for (const Unit& unit : kUnits) {
    if (std::abs(count) >= unit.factor * 0.9995) {
      const double value = count / unit.factor;
      return fmt::format("{} {}", format_number(value, std::abs(value) < 99.95 ? 1 : 0), unit.name);
    }
  }
  return format_number(count, 0);
}

std::string format_percent_number(double fraction, int num_decimals) {
  return format_number(fraction * 100, num_decimals);
}

std::string format_percent(double fraction, int num_decimals) {
  return format_percent_number(fraction, num_decimals) + " %";
}

int64_t parse_bytes(std::string_view text, std::string_view where) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (const std::optional<int64_t> whole = to_whole_number(text); whole && *whole >= 0) return *whole;
  const std::optional<double> bytes = number_with_unit(text, kByteUnits);
  if (bytes && *bytes >= 0 && *bytes < kLimit) return static_cast<int64_t>(*bytes);
  throw InputError(where, fmt::format("found \"{}\", want bytes such as 80GiB, 80GB or 2000000000", text));
}

double parse_seconds(std::string_view text, std::string_view where) {
  const std::optional<double> seconds = number_with_unit(text, kTimeUnits);
  if (seconds && *seconds >= 0) return *seconds;
  throw InputError(where, fmt::format("found \"{}\", want a time such as 90, 90s, 10min or 1.5h", text));
}

int64_t parse_count(std::string_view text, int64_t lower, int64_t upper, std::string_view where) {
  constexpr double kExact = 9007199254740992.0;  // 2^53, beyond which doubles skip whole numbers
  const std::string digits = without_separators(text);
  std::optional<int64_t> count = to_whole_number(digits);
  if (!count) {
    const std::optional<double> value = number_with_unit(digits, kCountUnits);
    const bool is_whole = value && std::abs(*value) <= kExact && std::floor(*value) == *value;
    if (is_whole) count = static_cast<int64_t>(*value);
  }
  if (count && *count >= lower && *count <= upper) return *count;
  throw InputError(where, fmt::format("found \"{}\", want a whole number from {} to {} (such as 1284, 300e9 or 125M)",
                                      text, format_count(lower), format_count(upper)));
}

}  // namespace layline::base
