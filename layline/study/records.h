// A study's priced layouts as run records: rows that were predicted, not measured.
#pragma once

#include <string>

#include "layline/study/study.h"

namespace layline::study {

// CSV with runs::run_columns() and runs::prediction_columns(). Nothing was run: status, step time and memory are empty
// and `scored` is 0; `source` and the notes say that the row is predicted, and of which job and why it is here
// (`role=best, micro-batch-1 follows`). Reading it back gives these rows as runs without a status.
std::string records_csv(const Study& study);

}  // namespace layline::study
