// Tables of text for people: aligned columns, bars, a width that fits the terminal.
//
//   TextTable table({{.title = "layout", .can_shorten = true}, {.title = "step s", .align = Align::kRight}});
//   table.add_row({"dp64 tp1 pp1 mb1", "26.5"});
//   std::string text = table.render({.width = 100});
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace layline::base {

enum class Align { kLeft, kRight };

struct TextStyle {
  int width = 100;      // cells of a line
  bool unicode = true;  // false: ASCII bars and dots
};

struct TextColumn {
  std::string title;
  Align align = Align::kLeft;
  int drop_priority = 0;     // 0: always shown; else left out when the table is too wide, the highest first
  bool can_shorten = false;  // cut, with an ellipsis, when leaving out columns was not enough
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns);

  // One cell a column, fewer than columns leaves the rest empty; more is a mistake of the caller.
  void add_row(std::vector<std::string> cells);

  // A line across all columns as it is (a remark, "…").
  void add_line(std::string text);

  // Lines that end in "\n", without blanks at their end, two blanks between columns, titles first unless all are empty.
  // No line is wider than style.width unless columns that may be neither left out nor shortened are.
  std::string render(const TextStyle& style, int indent = 2) const;

  bool empty() const { return rows_.empty(); }

 private:
  struct Row {
    std::vector<std::string> cells;
    bool is_line = false;
  };
  struct Fit;

  Fit fit(const TextStyle& style, int indent) const;
  std::vector<int> natural_widths() const;
  std::string row_text(const std::vector<std::string>& cells, const Fit& fit, const TextStyle& style) const;

  std::vector<TextColumn> columns_;
  std::vector<Row> rows_;
};

// Cells that a UTF-8 text takes on a terminal: characters, where combining ones take none and East Asian wide ones two.
int display_width(std::string_view text);

// The text cut to `width` cells, the last of them an ellipsis; unchanged when it fits.
std::string shorten(std::string_view text, int width, const TextStyle& style = {});

// A bar `fraction` (cut to 0…1) of `num_cells` long, padded with blanks to num_cells when `track` is false and with a
// light track when it is true. Unicode: eighths of a cell ("███▌"); ASCII: '#' and, as track, '.'.
std::string bar(double fraction, int num_cells, const TextStyle& style = {}, bool track = false);

// One block character a value, as high as its share of the largest ("▁▂▃▅▇"); in ASCII the digits 0 to 9.
std::string sparkline(const std::vector<double>& values, const TextStyle& style = {});

}  // namespace layline::base
