// That a manifest has all of every weight once.
#pragma once

#include "layline/trainer/checkpoint/manifest.h"

namespace layline::trainer::checkpoint {

// Throws base::InputError, without a place, naming the weight and the file: a rectangle outside of its weight, two that
// overlap, elements that no file has, data outside of its file.
void check_coverage(const Manifest& manifest);

}  // namespace layline::trainer::checkpoint
