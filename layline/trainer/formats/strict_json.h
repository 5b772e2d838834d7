// JSON in file headers. Private to this folder: it shows the JSON library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace layline::trainer::formats {

// An object; duplicate keys and more than 8 levels are errors. Throws base::InputError naming `where`.
nlohmann::json parse_strict_json(std::string_view text, const std::string& where);

// The value as it is in the file, cut to a length that fits a message.
std::string shown(const nlohmann::json& value);

}  // namespace layline::trainer::formats
