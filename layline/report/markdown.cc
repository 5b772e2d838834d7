#include <fmt/format.h>

#include <algorithm>

#include "layline/report/escape.h"
#include "layline/report/writers.h"

namespace layline::report {
namespace {

void add_cells(std::string& text, const std::vector<std::string>& cells) {
  text += "|";
  for (const std::string& cell : cells) text += " " + escape_markdown(cell) + " |";
  text += "\n";
}

void add_table(std::string& text, const Table& table, size_t max_rows) {
  if (table.empty()) return;
  text += fmt::format("\n**{}**\n\n", escape_markdown(table.title));
  std::vector<std::string> titles;
  std::string rule = "|";
  for (const TableColumn& column : table.columns) {
    titles.push_back(column.title);
    rule += column.is_number ? "---:|" : "---|";
  }
  add_cells(text, titles);
  text += rule + "\n";
  const size_t num_rows = std::min(table.rows.size(), max_rows);
  for (size_t i = 0; i < num_rows; ++i) add_cells(text, table.rows[i]);
  if (num_rows < table.rows.size()) text += fmt::format("\nand {} more rows\n", table.rows.size() - num_rows);
  if (!table.note.empty()) text += fmt::format("\n{}\n", escape_markdown(table.note));
}

}  // namespace

std::string to_markdown(const Report& report, size_t max_rows) {
  check_report(report);
  std::string text = fmt::format("# {}\n", escape_markdown(report.title));
  for (const std::string& paragraph : report.text) text += fmt::format("\n{}\n", escape_markdown(paragraph));
  for (const Section& section : report.sections) {
    text += fmt::format("\n## {}\n", escape_markdown(section.title));
    for (const std::string& paragraph : section.text) text += fmt::format("\n{}\n", escape_markdown(paragraph));
    for (const Chart& chart : section.charts) add_table(text, chart.table, max_rows);
    for (const Table& table : section.tables) add_table(text, table, max_rows);
  }
  return text;
}

}  // namespace layline::report
