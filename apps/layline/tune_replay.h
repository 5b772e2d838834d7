// What `layline tune --replay` says of recorded sweeps.
#pragma once

#include <string>
#include <vector>

#include "layline/sweep/replay.h"

namespace layline::app {

std::string replay_text(const std::vector<sweep::SweepReplay>& replays);
std::string replay_json(const std::vector<sweep::SweepReplay>& replays);

}  // namespace layline::app
