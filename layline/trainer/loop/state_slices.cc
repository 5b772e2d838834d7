#include "layline/trainer/loop/state_slices.h"

#include <algorithm>
#include <cassert>

namespace layline::trainer::loop {

namespace {

using checkpoint::Box;

int64_t product_from(const std::vector<int64_t>& shape, size_t first) {
  int64_t product = 1;
  for (size_t dim = first; dim < shape.size(); ++dim) product *= shape[dim];
  return product;
}

class Slicer {
 public:
  Slicer(const model::Parameter& parameter, int64_t offset, int64_t num_panels)
      : num_columns_(product_from(parameter.local_shape, 1)),
        num_rows_(parameter.global_shape.front()),
        first_row_(parameter.sharded_dim == 0 ? parameter.shard_offset : 0),
        first_column_(parameter.sharded_dim == 1 ? parameter.shard_offset : 0),
        panel_(product_from(parameter.global_shape, 1)),
        offset_(offset) {
    if (parameter.sharded_dim != 1 || num_panels <= 1) return;
    assert(panel_ % num_panels == 0);
    panel_ /= num_panels;
  }

  // Local elements [first, last), within a row or whole rows.
  void add(int64_t first, int64_t last) {
    if (first >= last) return;
    const int64_t row = first_row_ + first / num_columns_;
    const int64_t rows = std::min((last - first + num_columns_ - 1) / num_columns_, num_rows_ - row);  // not padding
    if (rows <= 0) return;
    const bool is_part_of_row = last - first < num_columns_;
    const int64_t begin = first_column_ + first % num_columns_;
    const int64_t end = begin + (is_part_of_row ? last - first : num_columns_);
    const int64_t width = is_part_of_row ? num_columns_ : panel_;
    for (int64_t column = begin; column < end;) {
      const int64_t next = is_part_of_row ? end : std::min(end, (column / width + 1) * width);
      slices_.push_back({Box{row, column, rows, next - column}, first - offset_ + column - begin, num_columns_});
      column = next;
    }
  }

  int64_t num_columns() const { return num_columns_; }
  std::vector<StateSlice> take() { return std::move(slices_); }

 private:
  int64_t num_columns_, num_rows_, first_row_, first_column_, panel_, offset_;
  std::vector<StateSlice> slices_;
};

}  // namespace

std::vector<StateSlice> slices_of(const model::Parameter& parameter, int64_t offset, int64_t length,
                                  int64_t num_panels) {
  Slicer slicer(parameter, offset, num_panels);
  const int64_t end = offset + length, width = slicer.num_columns();
  const int64_t rows_begin = std::min(end, (offset + width - 1) / width * width);
  const int64_t rows_end = std::max(rows_begin, end / width * width);
  slicer.add(offset, rows_begin);
  slicer.add(rows_begin, rows_end);
  slicer.add(rows_end, end);
  return slicer.take();
}

}  // namespace layline::trainer::loop
