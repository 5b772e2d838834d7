#include "layline/report/sample.h"

namespace layline::report {
namespace {

// Calls `visit` with each row's text, its line end included.
template <typename Visit>
void each_row(std::string_view text, Visit&& visit) {
  bool is_quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') is_quoted = !is_quoted;
    const bool is_last = i + 1 == text.size();
    if ((text[i] != '\n' || is_quoted) && !is_last) continue;
    const std::string_view row = text.substr(begin, i + 1 - begin);
    if (row.find_first_not_of("\r\n") != std::string_view::npos) visit(row);
    begin = i + 1;
  }
}

}  // namespace

int64_t count_csv_rows(std::string_view text) {
  int64_t rows = -1;  // the header is none
  each_row(text, [&](std::string_view) { ++rows; });
  return rows < 0 ? 0 : rows;
}

std::string sample_csv_rows(std::string_view text, int64_t num_rows) {
  const int64_t total = count_csv_rows(text);
  if (total <= num_rows) return std::string(text);
  std::string sample;
  int64_t row_index = -1, num_taken = 0;
  each_row(text, [&](std::string_view row) {
    // Row k is taken when k · num_rows / total reaches a new whole number.
    const bool is_taken = row_index < 0 || row_index * num_rows / total >= num_taken;
    if (is_taken && (row_index < 0 || num_taken < num_rows)) {
      sample += row;
      if (row_index >= 0) ++num_taken;
    }
    ++row_index;
  });
  return sample;
}

}  // namespace layline::report
