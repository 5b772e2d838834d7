// What is known of the terminal, and the progress line on it.
#pragma once

#include <memory>
#include <string_view>

#include "layline/base/progress.h"
#include "layline/base/text_table.h"

namespace layline::app {

// Width from the terminal (100 when there is none, at least 60), unicode unless the locale says otherwise.
base::TextStyle text_style();

// Shows on stderr when that is a terminal; nullptr otherwise.
std::unique_ptr<base::ProgressSink> progress_sink();

// Writes to stdout; a reader that went away ends the program quietly.
void print(std::string_view text);

}  // namespace layline::app
