// Timelines for people: a picture for terminals, and a trace for chrome://tracing and Perfetto.
#pragma once

#include <string>

#include "layline/schedule/simulate.h"

namespace layline::schedule {

// One row a pipeline rank, at most `width` columns in all, each column the same share of the makespan. The letter is
// what most of the column is: F forward, B backward (or input gradient), W weight gradient, '.' idle or messages. With
// virtual stages, chunks after the first are lower case.
//   rank 0  FFFF.........BBFBBF…
// Widths below 20 count as 20.
std::string to_picture(const Timeline& timeline, int width = 100);

// Chrome trace event format (JSON): a process a pipeline rank; computations and messages in threads of their own, each
// with micro-batch and virtual stage; a counter of the activations held. Times in microseconds.
std::string to_chrome_trace(const Timeline& timeline);

}  // namespace layline::schedule
