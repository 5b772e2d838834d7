// model.safetensors.index.json: which file of a sharded model holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace layline::trainer::formats {

// Tensor name → file name (within the folder of the index) from {"metadata": {…}, "weight_map": {name: file}}.
// Throws base::InputError naming `path`; a file name with a folder in it is one.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& path);

}  // namespace layline::trainer::formats
