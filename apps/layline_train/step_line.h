// A training step as a line for people.
#pragma once

#include <string>

#include "layline/base/text_table.h"
#include "layline/trainer/metrics/step_record.h"

namespace layline::app {

// "step  12/200  loss 5.1234  norm 0.98  lr 6.0e-04  24,310 tok/s  MFU –  0.42 GiB  ETA 41 s": lines of one run are
// aligned.
std::string step_line(const trainer::metrics::StepRecord& record, const base::TextStyle& style);

}  // namespace layline::app
