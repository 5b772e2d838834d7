#include "layline/spec/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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

// Follows the parser: where it is, so that errors can say so, and which keys an object has had.
class Watch {
 public:
  explicit Watch(std::string where) : where_(std::move(where)) {}

  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > kMaxDepth) throw InputError(where_, fmt::format("more than {} levels of nesting", kMaxDepth));
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        open_.emplace_back();
        break;
      case json::parse_event_t::object_end:
      case json::parse_event_t::array_end:
        open_.pop_back();
        break;
      case json::parse_event_t::key:
        enter(parsed.get_ref<const std::string&>());
        break;
      default:
        break;
    }
    return true;
  }

  std::string path() const {
    std::string path = "$";
    for (const Level& level : open_) {
      if (!level.key.empty()) path += "." + level.key;
    }
    return path;
  }

 private:
  struct Level {
    std::set<std::string> keys;  // of an object
    std::string key;             // whose value is being read
  };

  void enter(const std::string& key) {
    open_.back().key = key;
    if (!open_.back().keys.insert(key).second) throw InputError(where_, path() + ": the key is there twice");
  }

  std::string where_;
  std::vector<Level> open_;
};

// "parse error at line 3, column 7: …", and what people meet most often.
std::string syntax_message(const std::string& error, const std::string& path) {
  const size_t bracket = error.find("] ");
  const std::string message = bracket == std::string::npos ? error : error.substr(bracket + 2);
  if (message.find("number overflow") != std::string::npos) return fmt::format("{}: {}", path, message);
  for (const char* word : {"'N", "'I", "'-I", "n'", "N'"}) {
    if (message.find("invalid literal") != std::string::npos && message.find(word) != std::string::npos) {
      return fmt::format("{}: no valid JSON (which has no NaN and no Infinity): {}", path, message);
    }
  }
  return fmt::format("no valid JSON after {}: {}", path, message);
}

}  // namespace

json parse_strict_json(std::string_view text, const std::string& where) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  Watch watch(where);
  try {
    return json::parse(text,
                       [&](int depth, json::parse_event_t event, json& parsed) { return watch(depth, event, parsed); });
  } catch (const json::exception& error) {
    throw InputError(where, syntax_message(error.what(), watch.path()));
  }
}

JsonObject::JsonObject(const json& value, std::string where, std::string path)
    : value_(value), where_(std::move(where)), path_(std::move(path)) {
  if (!value_.is_object()) throw InputError(where_, fmt::format("{}: found {}, want an object", path_, shown(value_)));
}

bool JsonObject::has(const std::string& key) {
  asked_.insert(key);
  return value_.contains(key);
}

bool JsonObject::has_value(const std::string& key) { return has(key) && !value_.at(key).is_null(); }

bool JsonObject::is_object(const std::string& key) const { return value_.contains(key) && value_.at(key).is_object(); }

bool JsonObject::is_list(const std::string& key) const { return value_.contains(key) && value_.at(key).is_array(); }

bool JsonObject::is_flag(const std::string& key) const { return value_.contains(key) && value_.at(key).is_boolean(); }

const json* JsonObject::get(const std::string& key) {
  asked_.insert(key);
  const auto found = value_.find(key);
  if (found != value_.end()) return &*found;
  missing_.insert(key);
  return nullptr;
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
  const json* value = get(key);
  return value == nullptr ? lower : checked_whole(*value, path_of(key), lower, upper);
}

double JsonObject::number(const std::string& key, double lower, double upper) {
  const json* value = get(key);
  return value == nullptr ? lower : checked_number(*value, path_of(key), lower, upper);
}

bool JsonObject::flag(const std::string& key) {
  const json* value = get(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) fail(key, fmt::format("found {}, want true or false", shown(*value)));
  return value->get<bool>();
}

std::string JsonObject::text(const std::string& key) {
  const json* value = get(key);
  if (value == nullptr) return "";
  if (!value->is_string()) fail(key, fmt::format("found {}, want a text", shown(*value)));
  return value->get<std::string>();
}

std::string JsonObject::name(const std::string& key) {
  std::string found = text(key);
  if (found.empty() && !is_missing(key)) fail(key, "found \"\", want a text that is not empty");
  return found;
}

const json& JsonObject::list(const std::string& key, const char* of_what) {
  static const json empty = json::array();
  const json* value = get(key);
  if (value == nullptr) return empty;
  if (!value->is_array()) fail(key, fmt::format("found {}, want a list of {}", shown(*value), of_what));
  return *value;
}

const json& JsonObject::map(const std::string& key, const char* of_what) {
  static const json empty = json::object();
  const json* value = get(key);
  if (value == nullptr) return empty;
  if (!value->is_object()) fail(key, fmt::format("found {}, want an object of {}", shown(*value), of_what));
  return *value;
}

std::vector<std::string> JsonObject::texts(const std::string& key) {
  std::vector<std::string> texts;
  for (const json& item : list(key, "texts")) {
    if (!item.is_string()) fail(key, fmt::format("found {} in the list, want a text", shown(item)));
    texts.push_back(item.get<std::string>());
    if (std::count(texts.begin(), texts.end(), texts.back()) > 1) fail(key, shown(item) + " is in the list twice");
  }
  return texts;
}

std::map<std::string, std::string> JsonObject::text_map(const std::string& key) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, item] : map(key, "texts").items()) {
    if (!item.is_string()) fail(fmt::format("{}.{}", key, name), fmt::format("found {}, want a text", shown(item)));
    texts[name] = item.get<std::string>();
  }
  return texts;
}

std::map<std::string, double> JsonObject::number_map(const std::string& key) {
  std::map<std::string, double> numbers;
  for (const auto& [name, item] : map(key, "numbers").items()) {
    numbers[name] = checked_number(item, path_of(fmt::format("{}.{}", key, name)), -1e30, 1e30);
  }
  return numbers;
}

std::vector<double> JsonObject::numbers(const std::string& key, double lower, double upper) {
  std::vector<double> numbers;
  for (const json& item : list(key, "numbers")) numbers.push_back(checked_number(item, path_of(key), lower, upper));
  return numbers;
}

std::vector<int64_t> JsonObject::wholes(const std::string& key, int64_t lower, int64_t upper) {
  std::vector<int64_t> numbers;
  for (const json& item : list(key, "whole numbers")) {
    numbers.push_back(checked_whole(item, path_of(key), lower, upper));
    if (std::count(numbers.begin(), numbers.end(), numbers.back()) > 1)
      fail(key, shown(item) + " is in the list twice");
  }
  return numbers;
}

std::vector<JsonObject> JsonObject::objects(const std::string& key) {
  std::vector<JsonObject> objects;
  for (const json& item : list(key, "objects")) {
    objects.emplace_back(item, where_, fmt::format("{}[{}]", path_of(key), objects.size()));
  }
  return objects;
}

JsonObject JsonObject::object(const std::string& key) {
  const json* value = get(key);
  if (value == nullptr) fail(key, "is missing");
  return JsonObject(*value, where_, path_of(key));
}

size_t JsonObject::choice_of(const std::string& found, const std::string& path,
                             const std::vector<std::string>& names) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == found) return i;
  }
  const std::string nearest = base::nearest_name(found, names);
  throw InputError(where_, fmt::format("{}: found \"{}\", want one of {}{}", path, found, fmt::join(names, ", "),
                                       nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

void JsonObject::finish() const {
  for (const auto& [key, value] : value_.items()) {
    if (asked_.count(key) != 0) continue;
    const std::string nearest = base::nearest_name(key, {asked_.begin(), asked_.end()});
    fail(key, nearest.empty() ? "unknown key" : fmt::format("unknown key (did you mean \"{}\"?)", nearest));
  }
  require_all();
}

void JsonObject::require_all() const {
  if (!missing_.empty()) fail(*missing_.begin(), "is missing");
}

}  // namespace layline::spec
