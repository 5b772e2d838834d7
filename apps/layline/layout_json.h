// Priced layouts as JSON, the same in every command.
#pragma once

#include <nlohmann/json.hpp>

#include "layline/cost/step.h"
#include "layline/search/search.h"
#include "layline/spec/job.h"

namespace layline::app {

nlohmann::ordered_json json_of(const spec::Job& job, const search::PricedLayout& priced);
nlohmann::ordered_json json_of(const spec::Job& job);

// {"weights": bytes, …} without terms that are 0.
nlohmann::ordered_json json_of(const memory::StageMemory& memory);

// With two-space indent and a line end.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace layline::app
