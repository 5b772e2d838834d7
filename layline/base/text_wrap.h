// Sentences broken into lines.
#pragma once

#include <string>
#include <string_view>

#include "layline/base/text_table.h"

namespace layline::base {

// The text at its blanks broken into lines of at most style.width cells that begin with `indent` blanks and end in
// "\n"; a word that is longer has a line of its own.
std::string wrap(std::string_view text, const TextStyle& style, int indent = 2);

}  // namespace layline::base
