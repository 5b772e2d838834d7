#include "layline/base/text_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

namespace layline::base {
namespace {

constexpr int kGap = 2;
constexpr int kShortest = 8;  // cells that a shortened column keeps

std::string spaces(int count) { return std::string(static_cast<size_t>(std::max(count, 0)), ' '); }

std::string aligned(const std::string& text, int width, Align align) {
  const std::string padding = spaces(width - display_width(text));
  return align == Align::kRight ? padding + text : text + padding;
}

void trim_end(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

}  // namespace

// Which columns are shown, and how wide.
struct TextTable::Fit {
  std::vector<bool> shown;
  std::vector<int> widths;
  int indent = 0;

  int line_width() const {
    int total = indent;
    int num_shown = 0;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!shown[i]) continue;
      total += widths[i];
      ++num_shown;
    }
    return total + std::max(num_shown - 1, 0) * kGap;
  }
};

TextTable::TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  assert(cells.size() <= columns_.size());
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), false});
}

void TextTable::add_line(std::string text) { rows_.push_back({{std::move(text)}, true}); }

std::vector<int> TextTable::natural_widths() const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int width = display_width(columns_[i].title);
    for (const Row& row : rows_) {
      if (!row.is_line) width = std::max(width, display_width(row.cells[i]));
    }
    widths.push_back(width);
  }
  return widths;
}

TextTable::Fit TextTable::fit(const TextStyle& style, int indent) const {
  Fit fit{std::vector<bool>(columns_.size(), true), natural_widths(), indent};
  std::vector<size_t> order(columns_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return columns_[a].drop_priority > columns_[b].drop_priority; });
  for (const size_t i : order) {
    if (fit.line_width() > style.width && columns_[i].drop_priority > 0) fit.shown[i] = false;
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const int excess = fit.line_width() - style.width;
    if (excess > 0 && fit.shown[i] && columns_[i].can_shorten) {
      fit.widths[i] = std::max(std::min(kShortest, fit.widths[i]), fit.widths[i] - excess);
    }
  }
  return fit;
}

std::string TextTable::row_text(const std::vector<std::string>& cells, const Fit& fit, const TextStyle& style) const {
  std::string line = spaces(fit.indent);
  bool is_first = true;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!fit.shown[i]) continue;
    if (!is_first) line += spaces(kGap);
    line += aligned(shorten(cells[i], fit.widths[i], style), fit.widths[i], columns_[i].align);
    is_first = false;
  }
  return line;
}

std::string TextTable::render(const TextStyle& style, int indent) const {
  const Fit fit = this->fit(style, indent);
  std::vector<std::string> lines;
  std::vector<std::string> titles;
  for (const TextColumn& column : columns_) titles.push_back(column.title);
  const bool has_titles = std::any_of(titles.begin(), titles.end(), [](const auto& title) { return !title.empty(); });
  if (has_titles) lines.push_back(row_text(titles, fit, style));
  for (const Row& row : rows_) {
    lines.push_back(row.is_line ? spaces(indent) + row.cells.front() : row_text(row.cells, fit, style));
  }
  std::string text;
  for (std::string& line : lines) {
    trim_end(line);
    text += line + "\n";
  }
  return text;
}

std::string bar(double fraction, int num_cells, const TextStyle& style, bool track) {
  constexpr std::array<std::string_view, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double share = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const int steps_per_cell = style.unicode ? 8 : 1;
  const auto num_steps = static_cast<int>(std::lround(share * num_cells * steps_per_cell));
  std::string text;
  for (int i = 0; i < num_steps / steps_per_cell; ++i) text += style.unicode ? "█" : "#";
  text += kEighths[static_cast<size_t>(num_steps % steps_per_cell)];
  const std::string_view rest = !track ? " " : style.unicode ? "░" : ".";
  for (int i = (num_steps + steps_per_cell - 1) / steps_per_cell; i < num_cells; ++i) text += rest;
  return text;
}

std::string sparkline(const std::vector<double>& values, const TextStyle& style) {
  constexpr std::array<std::string_view, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  double largest = 0;
  for (const double value : values) largest = std::isfinite(value) ? std::max(largest, value) : largest;
  const int highest = style.unicode ? 7 : 9;
  std::string text;
  for (const double value : values) {
    const double share = largest > 0 && value > 0 ? std::min(value / largest, 1.0) : 0.0;
    const auto level = static_cast<size_t>(std::lround(share * highest));
    text += style.unicode ? std::string(kBlocks[level]) : std::to_string(level);
  }
  return text;
}

}  // namespace layline::base
