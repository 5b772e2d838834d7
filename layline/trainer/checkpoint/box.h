// A rectangle of a weight. Weights are seen as matrices: dimension 0 has the rows, what is left the columns; a weight
// of one dimension has one column.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace layline::trainer::checkpoint {

struct Box {
  int64_t first_row = 0, first_column = 0;
  int64_t num_rows = 0, num_columns = 0;

  int64_t size() const { return num_rows * num_columns; }
  int64_t end_row() const { return first_row + num_rows; }
  int64_t end_column() const { return first_column + num_columns; }
  bool operator==(const Box&) const = default;
};

// What both have: of size 0 when there is nothing.
inline Box intersection(const Box& a, const Box& b) {
  Box both;
  both.first_row = std::max(a.first_row, b.first_row);
  both.first_column = std::max(a.first_column, b.first_column);
  both.num_rows = std::max<int64_t>(0, std::min(a.end_row(), b.end_row()) - both.first_row);
  both.num_columns = std::max<int64_t>(0, std::min(a.end_column(), b.end_column()) - both.first_column);
  return both;
}

// All of a weight of that shape.
inline Box whole(const std::vector<int64_t>& shape) {
  Box box{0, 0, 1, 1};
  if (!shape.empty()) box.num_rows = shape.front();
  for (size_t dim = 1; dim < shape.size(); ++dim) box.num_columns *= shape[dim];
  return box;
}

}  // namespace layline::trainer::checkpoint
