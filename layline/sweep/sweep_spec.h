// SWEEP.json: one run, and the layouts of it that are to be measured (docs/sweeping.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/search/layout_request.h"
#include "layline/trainer/config/run_config.h"

namespace layline::sweep {

using search::Axis;
using search::LayoutRequest;

struct SweepSpec {
  std::string where;                // the file it was read from, for messages
  std::string name;                 // of the file, without folder and ending
  trainer::config::RunConfig base;  // its layout and metrics are not used; its memory limit is that of the sweep
  std::vector<int64_t> ranks;       // increasing
  LayoutRequest layouts;
  double time_limit_seconds = 600;                      // of one run
  std::optional<double> stop_when_slower_than_best_by;  // a factor above 1
  int64_t repeats = 1;
};

// Throws base::InputError: as parse_run_config for the base, and for unknown keys, wrong types, words that are none,
// a base with a layout, metrics or checkpoints of its own.
SweepSpec parse_sweep_spec(std::string_view text, const std::string& where);
SweepSpec read_sweep_spec(const std::string& path);

}  // namespace layline::sweep
