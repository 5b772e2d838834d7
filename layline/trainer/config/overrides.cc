#include "layline/trainer/config/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/spec/json_object.h"

namespace layline::trainer::config {
namespace {

using nlohmann::json;

struct Override {
  std::string path;  // "a.b"
  std::string value;
};

std::string flag_of(const std::string& text) { return fmt::format("--set {}", text); }

Override split(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw base::InputError(flag_of(text), "want KEY=VALUE, as in optimizer.learning_rate=1e-4");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

json value_of(const std::string& value, const std::string& flag) {
  const bool must_be_json = value.find_first_of("{[\"") == 0;
  if (!must_be_json && !json::accept(value)) return value;
  return spec::parse_strict_json(value, flag);
}

// Of paths as "a.b".
bool is_or_is_in(std::string_view path, std::string_view outer) {
  return path.starts_with(outer) && (path.size() == outer.size() || path[outer.size()] == '.');
}

bool has_key(const json& object, std::string_view path) {
  const json* at = &object;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('.', start), path.size());
    const std::string key(path.substr(start, end - start));
    if (!at->is_object() || !at->contains(key)) return false;
    at = &at->at(key);
    start = end + 1;
  }
  return true;
}

}  // namespace

void apply_overrides(json& object, const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const auto [path, value] = split(text);
    json* at = &object;
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find('.', start), path.size());
      if (end == start) throw base::InputError(flag_of(text), "the key has an empty part");
      if (!at->is_object() && !at->is_null()) {
        throw base::InputError(flag_of(text),
                               fmt::format("{} is no object, so nothing inside it can be set; set the whole of it",
                                           start == 0 ? "the file" : path.substr(0, start - 1)));
      }
      at = &(*at)[path.substr(start, end - start)];
      start = end + 1;
    }
    *at = value_of(value, flag_of(text));
  }
}

std::string override_in_message(const std::string& message, const std::string& where,
                                const std::vector<std::string>& overrides, const json* file) {
  const std::string prefix = where + ": $.";
  if (!message.starts_with(prefix)) return "";
  const std::string_view named = std::string_view(message).substr(prefix.size());
  const std::string_view key = named.substr(0, named.find_first_of(":["));
  const bool is_in_file = file == nullptr || has_key(*file, key);
  for (auto text = overrides.rbegin(); text != overrides.rend(); ++text) {
    const std::string path = split(*text).path;
    if (is_or_is_in(key, path) || (!is_in_file && is_or_is_in(path, key))) return *text;
  }
  return "";
}

}  // namespace layline::trainer::config
