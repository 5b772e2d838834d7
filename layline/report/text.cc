#include <fmt/format.h>

#include <algorithm>

#include "layline/base/text_wrap.h"
#include "layline/report/writers.h"

namespace layline::report {
namespace {

std::string table_text(const Table& table, const base::TextStyle& style, size_t max_rows) {
  std::vector<base::TextColumn> columns;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const TableColumn& column = table.columns[c];
    // Where the place is narrow, columns that are there for the filters go first, then the last ones.
    const int position = static_cast<int>(c);
    const int priority = column.filter_field.empty() ? (c < 2 ? 0 : position) : 1000 + position;
    columns.push_back({.title = column.title,
                       .align = column.is_number ? base::Align::kRight : base::Align::kLeft,
                       .drop_priority = priority,
                       .can_shorten = !column.is_number});
  }
  base::TextTable text(columns);
  const size_t num_rows = std::min(table.rows.size(), max_rows);
  for (size_t i = 0; i < num_rows; ++i) text.add_row(table.rows[i]);
  if (num_rows < table.rows.size()) text.add_line(fmt::format("… and {} more", table.rows.size() - num_rows));
  std::string out = text.render(style);
  if (!table.note.empty()) out += base::wrap(table.note, style, 0);
  return out;
}

}  // namespace

std::string to_text(const Report& report, const base::TextStyle& style, size_t max_rows) {
  check_report(report);
  std::string text = report.title + "\n" + std::string(report.title.size(), '=') + "\n";
  for (const std::string& paragraph : report.text) text += "\n" + base::wrap(paragraph, style, 0);
  for (const Section& section : report.sections) {
    text += "\n" + section.title + "\n" + std::string(section.title.size(), '-') + "\n";
    for (const std::string& paragraph : section.text) text += "\n" + base::wrap(paragraph, style, 0);
    for (const Chart& chart : section.charts) {
      if (!chart.table.empty()) text += "\n" + chart.table.title + "\n" + table_text(chart.table, style, max_rows);
    }
    for (const Table& table : section.tables) {
      if (!table.empty()) text += "\n" + table.title + "\n" + table_text(table, style, max_rows);
    }
  }
  return text;
}

}  // namespace layline::report
