#include "layline/trainer/formats/safetensors_index.h"

#include <fmt/format.h>

#include "layline/base/error.h"
#include "layline/trainer/formats/strict_json.h"

namespace layline::trainer::formats {

using base::InputError;
using nlohmann::json;

std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& path) {
  const json value = parse_strict_json(text, path);
  const auto weights = value.find("weight_map");
  if (weights == value.end()) throw InputError(path, "lacks weight_map, which says where each tensor is");
  if (!weights->is_object() || weights->empty()) {
    throw InputError(path,
                     fmt::format("weight_map: found {}, want an object of tensor and file names", shown(*weights)));
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : weights->items()) {
    const std::string found = file.is_string() ? file.get<std::string>() : "";
    if (found.empty() || found == "." || found == ".." || found.find('/') != std::string::npos ||
        found.find('\0') != std::string::npos) {
      throw InputError(path, fmt::format("weight_map: tensor {}: found {}, want the name of a file in this folder",
                                         shown(name), shown(file)));
    }
    files[name] = found;
  }
  return files;
}

}  // namespace layline::trainer::formats
