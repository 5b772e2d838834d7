// Keys of a JSON object set from the command line. Private to this folder: it shows the JSON library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace layline::trainer::config {

// Sets object["a"]["b"] for "a.b=c", in order; objects that are not there are made. c is JSON, or else a text. Throws
// base::InputError when an override has no "=", an empty key, or a key inside something that is no object.
void apply_overrides(nlohmann::json& object, const std::vector<std::string>& overrides);

// The override that made the key that an error message of `where` speaks of what it is: one that set the key, what it
// is in, or a part of it where the file, without overrides, has no such key (not asked where `file` is null). "" when
// none did.
std::string override_in_message(const std::string& message, const std::string& where,
                                const std::vector<std::string>& overrides, const nlohmann::json* file);

}  // namespace layline::trainer::config
