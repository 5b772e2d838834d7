#include "layline/trainer/loop/state_slices.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace layline::trainer::loop {
namespace {

// A weight of some shape, sharded over tp, of which this is one rank's.
model::Parameter random_parameter(int64_t num_panels) {
  const int64_t tp = *rc::gen::element<int64_t>(1, 2, 4), rank = *rc::gen::inRange<int64_t>(0, tp);
  model::Parameter parameter;
  parameter.sharded_dim = *rc::gen::inRange<int64_t>(-1, 2);
  const int64_t rows = *rc::gen::inRange<int64_t>(1, 9), columns = num_panels * *rc::gen::inRange<int64_t>(1, 4);
  parameter.global_shape = {rows, columns};
  parameter.local_shape = {rows, columns};
  if (parameter.sharded_dim == 0) {
    // Padded to tp: the last rank may have rows that the weight has not.
    parameter.local_shape[0] = (rows + tp - 1) / tp;
    parameter.shard_offset = parameter.local_shape[0] * rank;
  }
  if (parameter.sharded_dim == 1) {
    parameter.local_shape[1] = columns / tp;
    parameter.shard_offset = parameter.local_shape[1] * rank;
  }
  return parameter;
}

RC_GTEST_PROP(StateSlices, HaveEveryElementOfThePartOnce, ()) {
  const int64_t num_panels = *rc::gen::element<int64_t>(4, 8, 12);
  const model::Parameter parameter = random_parameter(num_panels);
  const int64_t columns = parameter.local_shape[1], size = parameter.num_local();
  const int64_t offset = *rc::gen::inRange<int64_t>(0, size), length = *rc::gen::inRange<int64_t>(0, size - offset + 1);
  std::vector<int> count(static_cast<size_t>(length));
  for (const StateSlice& slice : slices_of(parameter, offset, length, *rc::gen::element<int64_t>(1, num_panels))) {
    RC_ASSERT(slice.box.size() > 0);
    RC_ASSERT(slice.box.end_row() <= parameter.global_shape[0]);
    for (int64_t row = 0; row < slice.box.num_rows; ++row) {
      for (int64_t column = 0; column < slice.box.num_columns; ++column) {
        const int64_t in_part = slice.offset + row * slice.row_stride + column;
        const int64_t local = offset + in_part;
        ++count.at(static_cast<size_t>(in_part));
        const int64_t first_row = parameter.sharded_dim == 0 ? parameter.shard_offset : 0;
        const int64_t first_column = parameter.sharded_dim == 1 ? parameter.shard_offset : 0;
        RC_ASSERT(slice.box.first_row + row == first_row + local / columns);
        RC_ASSERT(slice.box.first_column + column == first_column + local % columns);
      }
    }
  }
  for (int64_t i = 0; i < length; ++i) {
    const int64_t first_row = parameter.sharded_dim == 0 ? parameter.shard_offset : 0;
    const bool is_padding = first_row + (offset + i) / columns >= parameter.global_shape[0];
    RC_ASSERT(count[static_cast<size_t>(i)] == (is_padding ? 0 : 1));
  }
}

TEST(StateSlices, OfOneDimensionHaveOneColumn) {
  model::Parameter parameter;
  parameter.global_shape = parameter.local_shape = {10};
  const std::vector<StateSlice> slices = slices_of(parameter, 3, 5, 4);
  ASSERT_EQ(slices.size(), 1U);
  EXPECT_EQ(slices[0].box, (checkpoint::Box{3, 0, 5, 1}));
}

TEST(StateSlices, PanelsAreThoseOfTheWholeWeight) {
  model::Parameter parameter;
  parameter.global_shape = {3, 16};
  parameter.local_shape = {3, 8};
  parameter.sharded_dim = 1;
  parameter.shard_offset = 8;
  const std::vector<StateSlice> slices = slices_of(parameter, 0, 24, 4);
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].box, (checkpoint::Box{0, 8, 3, 4}));
  EXPECT_EQ(slices[1].box, (checkpoint::Box{0, 12, 3, 4}));
  EXPECT_EQ(slices[1].offset, 4);
}

}  // namespace
}  // namespace layline::trainer::loop
