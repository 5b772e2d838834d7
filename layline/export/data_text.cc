#include "layline/export/data_text.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

namespace layline::exporting {
namespace {

using nlohmann::ordered_json;

// "1e-05" is a text in YAML 1.1, "1.0e-05" is not; and "1" is a whole number where readers want a real one.
std::string real_text(double value) {
  std::string number = fmt::format("{}", value);
  if (number.find('.') != std::string::npos) return number;
  return number.insert(std::min(number.find('e'), number.size()), ".0");
}

void emit(const ordered_json& value, YAML::Emitter& out) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(member, out);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    const bool has_maps = !value.empty() && value.front().is_object();
    out << (has_maps ? YAML::Block : YAML::Flow) << YAML::BeginSeq;
    for (const ordered_json& item : value) emit(item, out);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << (value.is_number_float() ? real_text(value.get<double>()) : value.dump());
  }
}

// A scalar, or a list: of lists, an item a line. JSON's texts are TOML's.
std::string toml_value(const ordered_json& value) {
  if (value.is_number_float()) return real_text(value.get<double>());
  if (!value.is_array()) return value.dump();
  const bool has_lists = !value.empty() && value.front().is_array();
  std::string text = "[";
  for (const ordered_json& item : value) {
    if (text.size() > 1) text += has_lists ? "," : ", ";
    text += (has_lists ? "\n  " : "") + toml_value(item);
  }
  return text + (has_lists ? ",\n]" : "]");
}

}  // namespace

std::string yaml_text(const ordered_json& tree) {
  YAML::Emitter out;
  emit(tree, out);
  return std::string(out.c_str()) + "\n";
}

std::string toml_text(const ordered_json& tree) {
  std::string text;
  for (const auto& [section, members] : tree.items()) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    for (const auto& [key, value] : members.items()) text += fmt::format("{} = {}\n", key, toml_value(value));
  }
  return text;
}

}  // namespace layline::exporting
