// Settings from JSON, YAML and TOML: keys of nested maps are joined by dots ("parallelism.tensor_parallel_degree").
// Private to this folder. All throw base::InputError with the place: syntax, more than 32 levels, more than 100,000
// values (as nested aliases of a YAML make).
#pragma once

#include <string>
#include <string_view>

#include "layline/export/settings.h"

namespace layline::exporting {

Settings json_settings(std::string_view text, const std::string& where);
Settings yaml_settings(std::string_view text, const std::string& where);
Settings toml_settings(std::string_view text, const std::string& where);

}  // namespace layline::exporting
