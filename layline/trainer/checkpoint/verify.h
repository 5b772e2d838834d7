// All of a checkpoint, read once.
#pragma once

#include <string>
#include <vector>

#include "layline/base/progress.h"
#include "layline/trainer/checkpoint/reader.h"

namespace layline::trainer::checkpoint {

// What is wrong with its files, a line for each that is damaged, in the order of the manifest; empty: every byte is
// what was written. Files are read in parallel. sink may be nullptr.
std::vector<std::string> verify(const CheckpointReader& reader, base::ProgressSink* sink = nullptr);

}  // namespace layline::trainer::checkpoint
