#include "layline/spec/json_object.h"

#include <fmt/format.h>

#include <cmath>

#include "layline/base/error.h"

namespace layline::spec {
namespace {

using base::InputError;
using nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr size_t kShownLength = 60;

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShownLength) text = text.substr(0, kShownLength) + "...";
  return text;
}

// Watches keys while the parser runs.
struct KeyWatch {
  std::string where;
  std::vector<std::set<std::string>> open;

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw InputError(where, fmt::format("more than {} levels of nesting", kMaxDepth));
    switch (event) {
      case json::parse_event_t::object_start:
        open.emplace_back();
        break;
      case json::parse_event_t::object_end:
        open.pop_back();
        break;
      case json::parse_event_t::key: {
        const std::string key = parsed.get<std::string>();
        if (!open.back().insert(key).second) throw InputError(where, fmt::format("duplicate key \"{}\"", key));
        break;
      }
      default:
        break;
    }
    return true;
  }
};

}  // namespace

json parse_strict_json(std::string_view text, const std::string& where) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  KeyWatch watch{where, {}};
  try {
    return json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
      return watch(depth, event, parsed);
    });
  } catch (const json::exception& error) {
    std::string message = error.what();
    const size_t bracket = message.find("] ");
    if (bracket != std::string::npos) message = message.substr(bracket + 2);
    throw InputError(where, "no valid JSON: " + message);
  }
}

JsonObject::JsonObject(const json& value, std::string where, std::string path)
    : value_(value), where_(std::move(where)), path_(std::move(path)) {
  if (!value_.is_object()) throw InputError(where_, fmt::format("{}: found {}, want an object", path_, shown(value_)));
}

const json& JsonObject::get(const std::string& key) {
  asked_.insert(key);
  const auto found = value_.find(key);
  if (found == value_.end()) fail(key, "is missing");
  return *found;
}

void JsonObject::fail(const std::string& key, const std::string& what) const {
  throw InputError(where_, fmt::format("{}: {}", path_of(key), what));
}

double JsonObject::checked_number(const json& value, const std::string& path, double lower, double upper) const {
  if (value.is_number()) {
    const double number = value.get<double>();
    if (std::isfinite(number) && number >= lower && number <= upper) return number;
  }
  throw InputError(where_, fmt::format("{}: found {}, want a number from {} to {}", path, shown(value), lower, upper));
}

int64_t JsonObject::checked_whole(const json& value, const std::string& path, int64_t lower, int64_t upper) const {
  const double number = value.is_number() ? value.get<double>() : NAN;
  // Beyond 2^53 a double cannot tell whole numbers apart; no size here comes near.
  constexpr double kExact = 9007199254740992.0;
  const bool whole = std::isfinite(number) && std::abs(number) <= kExact && number == std::floor(number);
  if (whole && number >= static_cast<double>(lower) && number <= static_cast<double>(upper)) {
    return static_cast<int64_t>(number);
  }
  throw InputError(where_,
                   fmt::format("{}: found {}, want a whole number from {} to {}", path, shown(value), lower, upper));
}

int64_t JsonObject::whole(const std::string& key, int64_t lower, int64_t upper) {
  return checked_whole(get(key), path_of(key), lower, upper);
}

double JsonObject::number(const std::string& key, double lower, double upper) {
  return checked_number(get(key), path_of(key), lower, upper);
}

bool JsonObject::flag(const std::string& key) {
  const json& value = get(key);
  if (!value.is_boolean()) fail(key, fmt::format("found {}, want true or false", shown(value)));
  return value.get<bool>();
}

std::string JsonObject::text(const std::string& key) {
  const json& value = get(key);
  if (!value.is_string()) fail(key, fmt::format("found {}, want a text", shown(value)));
  return value.get<std::string>();
}

std::vector<std::string> JsonObject::texts(const std::string& key) {
  const json& value = get(key);
  if (!value.is_array()) fail(key, fmt::format("found {}, want a list of texts", shown(value)));
  std::vector<std::string> texts;
  for (const json& item : value) {
    if (!item.is_string()) fail(key, fmt::format("found {} in the list, want a text", shown(item)));
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::map<std::string, std::string> JsonObject::text_map(const std::string& key) {
  const json& value = get(key);
  if (!value.is_object()) fail(key, fmt::format("found {}, want an object of texts", shown(value)));
  std::map<std::string, std::string> texts;
  for (const auto& [name, item] : value.items()) {
    if (!item.is_string()) fail(key + "." + name, fmt::format("found {}, want a text", shown(item)));
    texts[name] = item.get<std::string>();
  }
  return texts;
}

std::map<std::string, double> JsonObject::number_map(const std::string& key) {
  const json& value = get(key);
  if (!value.is_object()) fail(key, fmt::format("found {}, want an object of numbers", shown(value)));
  std::map<std::string, double> numbers;
  for (const auto& [name, item] : value.items()) {
    numbers[name] = checked_number(item, path_of(key + "." + name), -1e30, 1e30);
  }
  return numbers;
}

std::vector<int64_t> JsonObject::wholes(const std::string& key, int64_t lower, int64_t upper) {
  const json& value = get(key);
  if (!value.is_array()) fail(key, fmt::format("found {}, want a list of whole numbers", shown(value)));
  std::vector<int64_t> numbers;
  for (const json& item : value) numbers.push_back(checked_whole(item, path_of(key), lower, upper));
  return numbers;
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) {
  const json& value = get(key);
  if (!value.is_array()) fail(key, fmt::format("found {}, want a list of objects", shown(value)));
  std::vector<JsonObject> objects;
  for (size_t i = 0; i < value.size(); ++i) {
    objects.emplace_back(value[i], where_, fmt::format("{}[{}]", path_of(key), i));
  }
  return objects;
}

JsonObject JsonObject::object(const std::string& key) { return JsonObject(get(key), where_, path_of(key)); }

size_t JsonObject::choice_of(const std::string& found, const std::string& path,
                             const std::vector<std::string>& names) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == found) return i;
  }
  throw InputError(where_, fmt::format("{}: {}", path, base::unknown_name_message("choice", found, names)));
}

void JsonObject::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (asked_.count(key) != 0) continue;
    const std::string nearest = base::nearest_name(key, {asked_.begin(), asked_.end()});
    fail(key, nearest.empty() ? "unknown key" : fmt::format("unknown key (did you mean \"{}\"?)", nearest));
  }
}

}  // namespace layline::spec
