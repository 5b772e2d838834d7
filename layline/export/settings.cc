#include "layline/export/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "layline/base/error.h"
#include "layline/base/number.h"

namespace layline::exporting {
namespace {

constexpr size_t kShownCharacters = 60;

std::string shown(const Value& value) {
  if (value.is_list) return fmt::format("[{} values]", value.items.size());
  return value.text.size() <= kShownCharacters ? value.text : value.text.substr(0, kShownCharacters) + "...";
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

const Value* Settings::get(const std::string& key) {
  asked_.insert(key);
  const auto found = values_.find(key);
  if (found == values_.end()) return nullptr;
  const bool is_null = !found->second.is_list && (found->second.text == "null" || found->second.text == "None");
  return is_null ? nullptr : &found->second;
}

void Settings::fail(const std::string& key, const std::string& what) const {
  throw base::InputError(where_ + ": " + key, what);
}

std::optional<int64_t> Settings::whole(const std::string& key, int64_t lower, int64_t upper) {
  const Value* value = get(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = value->is_list ? std::nullopt : base::to_whole_number(value->text);
  if (!number || *number < lower || *number > upper) {
    fail(key, fmt::format("found \"{}\", want a whole number from {} to {}", shown(*value), lower, upper));
  }
  return number;
}

std::optional<double> Settings::number(const std::string& key, double lower, double upper) {
  const Value* value = get(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = value->is_list ? std::nullopt : base::to_number(value->text);
  if (!number || !(*number >= lower && *number <= upper)) {
    fail(key, fmt::format("found \"{}\", want a number from {} to {}", shown(*value), lower, upper));
  }
  return number;
}

std::optional<std::string> Settings::text(const std::string& key) {
  const Value* value = get(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_list) fail(key, "found a list, want a text");
  return value->text;
}

std::optional<bool> Settings::flag(const std::string& key) {
  const std::optional<std::string> found = text(key);
  if (!found) return std::nullopt;
  const std::string word = lower(*found);
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  fail(key, fmt::format("found \"{}\", want true or false", *found));
}

const std::vector<Value>* Settings::list(const std::string& key) {
  const Value* value = get(key);
  if (value == nullptr) return nullptr;
  if (!value->is_list) fail(key, fmt::format("found \"{}\", want a list", shown(*value)));
  return &value->items;
}

int64_t Settings::whole_or(const std::string& key, int64_t fallback, int64_t lower, int64_t upper) {
  return whole(key, lower, upper).value_or(fallback);
}

std::string Settings::text_or(const std::string& key, const std::string& fallback) {
  return text(key).value_or(fallback);
}

std::string Settings::one_of(const std::string& key, const std::string& fallback,
                             const std::vector<std::string>& allowed) {
  const std::string found = text_or(key, fallback);
  if (found == fallback || std::find(allowed.begin(), allowed.end(), found) != allowed.end()) return found;
  const std::string nearest = base::nearest_name(found, allowed);
  fail(key, fmt::format("found \"{}\", want one of {}{}", found, fmt::join(allowed, ", "),
                        nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

std::string Settings::first_of(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    if (has(key)) return key;
  }
  return *keys.begin();
}

void Settings::pass_over(std::initializer_list<const char*> keys) { asked_.insert(keys.begin(), keys.end()); }

std::vector<std::string> Settings::ignored() const {
  std::vector<std::string> lines;
  for (const auto& [key, value] : values_) {
    if (asked_.contains(key)) continue;
    const std::string text = shown(value);
    lines.push_back(text.empty() || text == "true" ? key : fmt::format("{} {}", key, text));
  }
  return lines;
}

}  // namespace layline::exporting
