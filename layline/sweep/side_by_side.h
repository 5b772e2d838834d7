// What was predicted of a layout beside what the trainer measured of it, by the planner's names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layline/search/explain.h"
#include "layline/trainer/metrics/step_record.h"

namespace layline::sweep {

struct Pair {
  std::string_view what;
  double predicted = 0, measured = 0;
};

struct StageBeside {
  Pair peak_bytes;
  std::vector<Pair> bytes;  // names of which one is not 0. "activations" include what is there for a moment or sent:
                            // the trainer's allocator cannot tell them apart
};

struct SideBySide {
  int64_t num_steps = 0;      // that count: those after the first two, where there are more
  Pair step_seconds;          // the median
  size_t slowest_stage = 0;   // whose own work takes longest
  std::vector<Pair> seconds;  // of that stage: medians, which add up to the step nearly. The planner's launches count
                              // as memory-bound, its sends and bubbles as pipeline, as a rank cannot tell them apart
  std::vector<StageBeside> stages;
};

// Throws base::InputError naming `where`, the metrics' file, when the rows are of another model or layout, or lack what
// is to be compared.
SideBySide beside(const spec::Job& job, const search::Explanation& predicted,
                  const std::vector<trainer::metrics::StepRecord>& rows, const std::string& where);

}  // namespace layline::sweep
