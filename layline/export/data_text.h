// Trees of settings as YAML and TOML. Private to this folder: it shows the JSON library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace layline::exporting {

// Maps in blocks, lists in one line, texts quoted, numbers so that YAML 1.1 reads them as numbers too.
std::string yaml_text(const nlohmann::ordered_json& tree);

// Of sections of scalars and lists, without nulls.
std::string toml_text(const nlohmann::ordered_json& tree);

}  // namespace layline::exporting
