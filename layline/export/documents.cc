#include "layline/export/documents.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <utility>

#include "layline/base/error.h"
#include "layline/export/toml.h"
#include "layline/spec/json_object.h"

namespace layline::exporting {
namespace {

constexpr size_t kMaxValues = 100'000;
constexpr int kMaxLevels = 32;

// Collects the leaves of a tree, whatever its library.
class Collector {
 public:
  explicit Collector(const std::string& where) : settings_(where) {}

  void set(const std::string& key, Value value) {
    if (settings_.has(key)) settings_.fail(key, "is there twice");
    settings_.set(key, std::move(value));
  }
  void count(int level) {
    if (level > kMaxLevels)
      throw base::InputError(settings_.where(), fmt::format("has more than {} levels", kMaxLevels));
    if (++num_values_ > kMaxValues) {
      throw base::InputError(settings_.where(), fmt::format("has more than {} values", kMaxValues));
    }
  }
  Settings take() { return std::move(settings_); }

 private:
  Settings settings_;
  size_t num_values_ = 0;
};

std::string joined(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

Value list_of(std::vector<Value> items) {
  Value list;
  list.items = std::move(items);
  list.is_list = true;
  return list;
}

Value json_value(const nlohmann::json& json, int level, Collector& out) {
  out.count(level);
  if (!json.is_array()) return {json.is_string() ? json.get<std::string>() : json.dump(), {}, false};
  std::vector<Value> items;
  for (const nlohmann::json& item : json) items.push_back(json_value(item, level + 1, out));
  return list_of(std::move(items));
}

void collect(const nlohmann::json& json, const std::string& path, int level, Collector& out) {
  if (!json.is_object()) return out.set(path, json_value(json, level, out));
  for (const auto& [key, member] : json.items()) collect(member, joined(path, key), level + 1, out);
}

Value yaml_value(const YAML::Node& node, int level, Collector& out) {
  out.count(level);
  if (node.IsNull()) return {"null", {}, false};
  if (node.IsScalar()) return {node.Scalar(), {}, false};
  std::vector<Value> items;
  if (node.IsSequence()) {
    for (const auto& item : node) items.push_back(yaml_value(item, level + 1, out));
  }
  return list_of(std::move(items));
}

void collect(const YAML::Node& node, const std::string& path, int level, Collector& out) {
  if (!node.IsMap()) return out.set(path, yaml_value(node, level, out));
  for (const auto& member : node) {
    out.count(level);
    collect(member.second, joined(path, member.first.IsScalar() ? member.first.Scalar() : "?"), level + 1, out);
  }
}

Value toml_value(const toml::node& node, int level, Collector& out) {
  out.count(level);
  if (const toml::array* array = node.as_array()) {
    std::vector<Value> items;
    for (const toml::node& item : *array) items.push_back(toml_value(item, level + 1, out));
    return list_of(std::move(items));
  }
  if (const auto* text = node.as_string()) return {text->get(), {}, false};
  if (const auto* number = node.as_integer()) return {fmt::format("{}", number->get()), {}, false};
  if (const auto* number = node.as_floating_point()) return {fmt::format("{}", number->get()), {}, false};
  if (const auto* flag = node.as_boolean()) return {flag->get() ? "true" : "false", {}, false};
  return {};
}

void collect(const toml::table& table, const std::string& path, int level, Collector& out) {
  for (const auto& [key, member] : table) {
    out.count(level);
    const std::string name = joined(path, std::string(key.str()));
    if (const toml::table* inner = member.as_table()) {
      collect(*inner, name, level + 1, out);
    } else {
      out.set(name, toml_value(member, level, out));
    }
  }
}

[[noreturn]] void want_map(const std::string& where) {
  throw base::InputError(where, "is no map of settings: want \"name: value\" at the top");
}

}  // namespace

Settings json_settings(std::string_view text, const std::string& where) {
  const nlohmann::json json = spec::parse_strict_json(text, where);
  if (!json.is_object()) want_map(where);
  Collector out(where);
  collect(json, "", 0, out);
  return out.take();
}

Settings yaml_settings(std::string_view text, const std::string& where) {
  Collector out(where);
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (!root.IsMap()) want_map(where);
    collect(root, "", 0, out);
  } catch (const YAML::Exception& error) {
    throw base::InputError(fmt::format("{}:{}", where, error.mark.line + 1), fmt::format("no YAML: {}", error.msg));
  }
  return out.take();
}

Settings toml_settings(std::string_view text, const std::string& where) {
  Collector out(where);
  try {
    const toml::table root = toml::parse(text);
    collect(root, "", 0, out);
  } catch (const toml::parse_error& error) {
    throw base::InputError(fmt::format("{}:{}", where, error.source().begin.line),
                           fmt::format("no TOML: {}", error.description()));
  }
  return out.take();
}

}  // namespace layline::exporting
