// `layline explain --measured`: predicted and measured beside each other, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "layline/sweep/side_by_side.h"

namespace layline::app {

std::string text_of(const sweep::SideBySide& beside);

nlohmann::ordered_json json_of(const sweep::SideBySide& beside);

}  // namespace layline::app
