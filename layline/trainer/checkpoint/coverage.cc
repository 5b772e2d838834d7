#include "layline/trainer/checkpoint/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "layline/base/error.h"

namespace layline::trainer::checkpoint {
namespace {

using base::InputError;

void check_slice(const Manifest& manifest, const SavedFile& file, const SavedSlice& slice) {
  if (slice.parameter < 0 || slice.parameter >= static_cast<int64_t>(manifest.parameters.size())) {
    throw InputError(
        fmt::format("file {}: holds weight {}, there are {}", file.name, slice.parameter, manifest.parameters.size()));
  }
  const SavedParameter& parameter = manifest.parameters[static_cast<size_t>(slice.parameter)];
  const Box all = whole(parameter.shape), &box = slice.box;
  const bool is_inside = box.first_row >= 0 && box.first_column >= 0 && box.num_rows > 0 && box.num_columns > 0 &&
                         box.num_rows <= all.num_rows - box.first_row &&
                         box.num_columns <= all.num_columns - box.first_column;
  if (!is_inside) {
    throw InputError(fmt::format("file {}: rows {} to {}, columns {} to {} lie outside of weight {}", file.name,
                                 box.first_row, box.end_row(), box.first_column, box.end_column(), parameter.name));
  }
  const int64_t size_bytes = box.size() * formats::num_bytes(manifest.type);
  for (int64_t kind = 0; kind < manifest.num_kinds(); ++kind) {
    const int64_t begin = slice.begin_bytes[static_cast<size_t>(kind)];
    if (begin < file.header_bytes || begin > file.size_bytes - size_bytes) {
      throw InputError(fmt::format("file {}: {} of weight {} lies outside of the file", file.name,
                                   kKindNames[static_cast<size_t>(kind)], parameter.name));
    }
  }
}

// Goes down the rows with the rectangles that the current one is in, by first column: O(n log n).
void check_no_overlap(std::vector<Box> boxes, const std::string& name) {
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.first_row < b.first_row; });
  std::map<int64_t, Box> open;             // by first column
  std::multimap<int64_t, int64_t> by_end;  // row → first column
  for (const Box& box : boxes) {
    while (!by_end.empty() && by_end.begin()->first <= box.first_row) {
      open.erase(by_end.begin()->second);
      by_end.erase(by_end.begin());
    }
    const auto next = open.lower_bound(box.first_column);
    const bool meets_next = next != open.end() && next->first < box.end_column();
    const bool meets_previous = next != open.begin() && std::prev(next)->second.end_column() > box.first_column;
    if (meets_next || meets_previous) {
      throw InputError(fmt::format("weight {}: row {}, column {} is in two places", name, box.first_row,
                                   meets_next ? next->first : box.first_column));
    }
    open.emplace(box.first_column, box);
    by_end.emplace(box.end_row(), box.first_column);
  }
}

}  // namespace

void check_coverage(const Manifest& manifest) {
  std::vector<std::vector<Box>> boxes(manifest.parameters.size());
  for (const SavedFile& file : manifest.files) {
    for (const SavedSlice& slice : file.slices) {
      check_slice(manifest, file, slice);
      boxes[static_cast<size_t>(slice.parameter)].push_back(slice.box);
    }
  }
  for (size_t i = 0; i < boxes.size(); ++i) {
    const SavedParameter& parameter = manifest.parameters[i];
    int64_t sum = 0;
    for (const Box& box : boxes[i]) sum += box.size();
    check_no_overlap(std::move(boxes[i]), parameter.name);
    if (sum != whole(parameter.shape).size()) {
      throw InputError(fmt::format("weight {}: {} of {} elements are in no file", parameter.name,
                                   whole(parameter.shape).size() - sum, whole(parameter.shape).size()));
    }
  }
}

}  // namespace layline::trainer::checkpoint
