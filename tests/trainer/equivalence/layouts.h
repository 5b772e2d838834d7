// The layouts under which the tiny run is repeated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tiny_run.h"

namespace layline::trainer {

struct Trial {
  TinyCase tiny;
  layout::Layout layout;
};

std::string to_text(const Trial& trial);

// Legal ones only, of at most 16 ranks.
std::vector<Trial> every_axis_alone();
std::vector<Trial> every_pair_of_settings();
// `count` different ones, from the seed.
std::vector<Trial> seeded_random(int64_t count, uint64_t seed);

}  // namespace layline::trainer
