// The tiny run with a checkpoint in between: from one layout to another.
#pragma once

#include <string>

#include "tiny_run.h"

namespace layline::trainer {

struct Interruption {
  layout::Layout before, after;
  int64_t saved_step = 2;  // after which a checkpoint is begun
  int64_t last_step = 3;   // until which the first run goes on meanwhile
};

// Runs until the last step under the first layout, resumes from the checkpoint of the saved one under the second, and
// compares what follows with the uninterrupted run on one rank. Returns what differs, or what was refused; "" for
// nothing.
std::string compare_resumed(const TinyCase& tiny, const Interruption& interruption, const RunRecord& reference,
                            double tolerance = 1e-10);

}  // namespace layline::trainer
