// Advice as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "layline/study/advice.h"
#include "layline/study/evidence.h"

namespace layline::app {

// A block a rule, those of one source together; below each what measured runs say, where there are some.
std::string advice_text(const study::Advice& advice, const std::optional<study::EvidenceSummary>& evidence);

// `evidence` null where there is none.
nlohmann::ordered_json advice_json(const study::Advice& advice, const std::optional<study::EvidenceSummary>& evidence);

// One outcome, as advise and study write it.
nlohmann::ordered_json json_of(const spec::Job& job, const study::Outcome& outcome);

}  // namespace layline::app
