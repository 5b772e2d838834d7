// From a path to its tokens.
#pragma once

#include <memory>
#include <string>

#include "layline/trainer/formats/token_source.h"

namespace layline::trainer::formats {

// The tokens of
//   - a text file, one token a byte, when `path` is a file that does not end in .bin or .idx;
//   - a Megatron data set, when `path` is the prefix of a .bin and an .idx file, or one of the two.
// Throws base::InputError saying what was looked for and the nearest name in that folder, or what is wrong with the
// file.
std::unique_ptr<const TokenSource> open_tokens(const std::string& path);

}  // namespace layline::trainer::formats
