#include "layline/base/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

namespace layline::base {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitute = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

InputError::InputError(std::string_view where, std::string_view what)
    : std::runtime_error(where.empty() ? std::string(what) : fmt::format("{}: {}", where, what)) {}

RunError::RunError(std::string_view where, std::string_view what)
    : std::runtime_error(fmt::format("{}: {}", where, what)) {}

InputError::InputError(std::string_view message) : std::runtime_error(std::string(message)) {}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kMaxLength = 200;
  if (name.size() > kMaxLength) return "";
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name_message(std::string_view kind, std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  if (!nearest.empty()) return fmt::format("no {} \"{}\" (did you mean \"{}\"?)", kind, name, nearest);
  constexpr size_t kShown = 12;
  if (known.size() > kShown) return fmt::format("no {} \"{}\"", kind, name);
  return fmt::format("no {} \"{}\" (known: {})", kind, name, fmt::join(known, ", "));
}

}  // namespace layline::base
