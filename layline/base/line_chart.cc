#include "layline/base/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace layline::base {
namespace {

constexpr size_t kDotColumns = 2, kDotRows = 4;  // of a cell of braille
// Bits of the dots of U+2800, by column and row.
constexpr std::array<std::array<unsigned, kDotRows>, kDotColumns> kDots = {
    {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};

// Means of the finite values of each column; as many columns as values where those are fewer.
std::vector<double> columns_of(const std::vector<double>& values, size_t most) {
  const size_t count = std::min(values.size(), most);
  std::vector<double> means;
  for (size_t i = 0; i < count; ++i) {
    double sum = 0;
    int64_t num_finite = 0;
    for (size_t j = i * values.size() / count; j < (i + 1) * values.size() / count; ++j) {
      if (!std::isfinite(values[j])) continue;
      sum += values[j];
      ++num_finite;
    }
    means.push_back(num_finite > 0 ? sum / static_cast<double>(num_finite) : std::numeric_limits<double>::quiet_NaN());
  }
  return means;
}

// Which dots are set, as a picture.
class Picture {
 public:
  Picture(size_t num_columns, size_t num_rows) : num_columns_(num_columns), dots_(num_columns * num_rows) {}

  bool at(size_t column, size_t row) const { return column < num_columns_ && dots_[row * num_columns_ + column]; }

  // Down or up from the row before, so that the line has no holes.
  void draw(size_t column, size_t row, size_t previous_row) {
    set(column, row);
    for (size_t r = previous_row + 1; r < row; ++r) set(column, r);
    for (size_t r = row + 1; r < previous_row; ++r) set(column, r);
  }

 private:
  void set(size_t column, size_t row) { dots_[row * num_columns_ + column] = true; }

  size_t num_columns_;
  std::vector<bool> dots_;
};

Picture draw(const std::vector<double>& columns, size_t num_rows, double low, double high) {
  Picture picture(columns.size(), num_rows);
  bool has_previous = false;
  size_t previous = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!std::isfinite(columns[i])) {
      has_previous = false;
      continue;
    }
    const double share = high > low ? (high - columns[i]) / (high - low) : 0.5;
    const auto row = static_cast<size_t>(std::lround(share * static_cast<double>(num_rows - 1)));
    picture.draw(i, row, has_previous ? previous : row);
    previous = row;
    has_previous = true;
  }
  return picture;
}

std::string braille(unsigned bits) {
  const unsigned code = 0x2800 + bits;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

std::string cell(const Picture& picture, size_t column, size_t row, bool unicode) {
  if (!unicode) return picture.at(column, row) ? "*" : " ";
  unsigned bits = 0;
  for (size_t x = 0; x < kDotColumns; ++x) {
    for (size_t y = 0; y < kDotRows; ++y) {
      if (picture.at(column * kDotColumns + x, row * kDotRows + y)) bits |= kDots[x][y];
    }
  }
  return bits == 0 ? " " : braille(bits);
}

std::string without_blanks_at_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string line_chart(const LineChart& chart, const TextStyle& style, int indent) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const size_t dots = style.unicode ? kDotColumns : 1, dot_rows = style.unicode ? kDotRows : 1;
  constexpr int kLabel = 11;  // "-1.234e+100"
  const int width = std::max(8, style.width - indent - kLabel - 1);
  const std::vector<double> columns = columns_of(chart.values, static_cast<size_t>(width) * dots);
  for (const double value : columns) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return "";
  const auto num_rows = static_cast<size_t>(std::max(2, chart.num_rows));
  const Picture picture = draw(columns, num_rows * dot_rows, low, high);
  const size_t num_cells = (columns.size() + dots - 1) / dots;
  std::string text;
  for (size_t row = 0; row < num_rows; ++row) {
    const bool is_flat = low == high;
    const std::string label = is_flat && row > 0    ? ""
                              : row == 0            ? fmt::format("{:.4g}", high)
                              : row == num_rows - 1 ? fmt::format("{:.4g}", low)
                                                    : "";
    std::string line = fmt::format("{:{}}{:>{}} ", "", indent, label, kLabel);
    for (size_t column = 0; column < num_cells; ++column) line += cell(picture, column, row, style.unicode);
    text += without_blanks_at_end(line) + "\n";
  }
  const auto room = static_cast<int>(num_cells) - display_width(chart.first);
  text += fmt::format("{:{}}{}{:>{}}", "", indent + kLabel + 1, chart.first, chart.last, std::max(room, 1));
  return text + "\n";
}

}  // namespace layline::base
