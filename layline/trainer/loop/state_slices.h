// Where a part of a rank's flat weight lies in the whole weight: as rectangles, which do not depend on the layout.
#pragma once

#include <cstdint>
#include <vector>

#include "layline/trainer/checkpoint/box.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::loop {

// A rectangle of the whole weight, and where its elements are in the part.
struct StateSlice {
  checkpoint::Box box;
  int64_t offset = 0;      // of its first element
  int64_t row_stride = 0;  // elements from a row to the next
};

// Elements [offset, offset + length) of the flat local weight, without padding: at most three rectangles, a row that is
// begun, whole rows, and a row that is not finished. Weights that are sharded by column are further cut into num_panels
// panels of the whole weight's columns, so that ranks of any tp that divides num_panels find theirs in one piece; 1:
// not.
std::vector<StateSlice> slices_of(const model::Parameter& parameter, int64_t offset, int64_t length,
                                  int64_t num_panels);

}  // namespace layline::trainer::loop
