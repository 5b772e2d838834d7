// One thing that is measured, as something to be called.
#pragma once

#include <cstdint>
#include <functional>

#include "layline/machine/plan.h"
#include "layline/trainer/comm/group_factory.h"

namespace layline::trainer::measure {

struct Operation {
  std::function<void(int64_t index)> prepare;  // before each call, not timed; may be empty
  std::function<void(int64_t index)> run;      // index: of the call, for operands that are not in the cache
  double share = 1;                            // of a call's seconds that count
};

// Every rank makes the same one at the same time. Throws base::InputError for a table that this program does not know.
Operation make_operation(const machine::Point& point, comm::GroupFactory& factory);

}  // namespace layline::trainer::measure
