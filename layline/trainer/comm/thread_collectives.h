// What the ranks of a meeting asked for, done by one thread: sums in rank order, so that all ranks get the same bits.
#pragma once

#include <vector>

#include "layline/trainer/comm/call.h"

namespace layline::trainer::comm {

// calls: by rank, all of the same operation, shape and dtype.
void do_collective(const std::vector<Call>& calls);

}  // namespace layline::trainer::comm
