#include "layline/export/data_text.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

#include "layline/export/toml.h"

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

toml::array array_of(const ordered_json& list);

toml::table table_of(const ordered_json& tree) {
  toml::table table;
  for (const auto& [key, value] : tree.items()) {
    if (value.is_object()) {
      table.insert(key, table_of(value));
    } else if (value.is_array()) {
      table.insert(key, array_of(value));
    } else if (value.is_boolean()) {
      table.insert(key, value.get<bool>());
    } else if (value.is_number_integer()) {
      table.insert(key, value.get<int64_t>());
    } else if (value.is_number()) {
      table.insert(key, value.get<double>());
    } else {
      table.insert(key, value.get<std::string>());
    }
  }
  return table;
}

// Of texts, or of lists of texts.
toml::array array_of(const ordered_json& list) {
  toml::array array;
  for (const ordered_json& item : list) {
    if (item.is_array()) {
      array.push_back(array_of(item));
    } else {
      array.push_back(item.get<std::string>());
    }
  }
  return array;
}

}  // namespace

std::string yaml_text(const ordered_json& tree) {
  YAML::Emitter out;
  emit(tree, out);
  return std::string(out.c_str()) + "\n";
}

std::string toml_text(const ordered_json& tree) {
  std::ostringstream out;
  out << table_of(tree) << "\n";
  return out.str();
}

}  // namespace layline::exporting
