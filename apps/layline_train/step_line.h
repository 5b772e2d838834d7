// A training step as a line for people.
#pragma once

#include <string>

#include "layline/base/text_table.h"
#include "layline/trainer/metrics/step_record.h"

namespace layline::app {

// "step  12/200  loss 5.1234  norm 0.98  lr 6.0e-04  24,310 tok/s  MFU 45.7 %  0.42 GiB  ETA 41 s". Lines of one run
// are aligned and, but for the validation loss behind them, fit the width from 84 cells on: an MFU that is not known,
// the learning rate and the norm are left out where they would not.
std::string step_line(const trainer::metrics::StepRecord& record, const base::TextStyle& style);

}  // namespace layline::app
