#include "layline/trainer/formats/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "layline/base/error.h"

namespace layline::trainer::formats {

using base::InputError;
using nlohmann::json;

json parse_strict_json(std::string_view text, const std::string& where) {
  constexpr int kMaxDepth = 8;
  std::vector<std::set<std::string>> keys;  // of each object that is open
  const auto watch = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (depth > kMaxDepth) throw InputError(where, fmt::format("more than {} levels of nesting", kMaxDepth));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get_ref<const std::string&>()).second) {
      throw InputError(where, fmt::format("{} is there twice", shown(parsed)));
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, watch);
  } catch (const json::exception& error) {
    const std::string message = error.what();
    const size_t bracket = message.find("] ");
    throw InputError(where, "no valid JSON: " + (bracket == std::string::npos ? message : message.substr(bracket + 2)));
  }
  if (!value.is_object()) throw InputError(where, fmt::format("found {}, want an object", shown(value)));
  return value;
}

std::string shown(const json& value) {
  constexpr size_t kLength = 120;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kLength) text = text.substr(0, kLength) + "...";
  return text;
}

}  // namespace layline::trainer::formats
