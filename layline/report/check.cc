#include <fmt/format.h>

#include <set>
#include <stdexcept>

#include "layline/report/writers.h"

namespace layline::report {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error("report: " + what);
}

void check_table(const Table& table, const std::string& where) {
  for (const auto& row : table.rows) {
    require(row.size() == table.columns.size(), fmt::format("a row of table \"{}\" of {} has {} cells for {} columns",
                                                            table.title, where, row.size(), table.columns.size()));
  }
}

void check_chart(const Chart& chart, const Report& report) {
  require(chart.spec.contains("data") && chart.spec["data"].contains("name"),
          fmt::format("chart {} names no dataset", chart.id));
  const auto name = chart.spec["data"]["name"].get<std::string>();
  require(report.datasets.count(name) != 0, fmt::format("chart {} wants dataset {}", chart.id, name));
  check_table(chart.table, chart.id);
}

}  // namespace

void check_report(const Report& report) {
  std::set<std::string> ids;
  for (const auto& [name, dataset] : report.datasets) {
    for (const auto& row : dataset.rows) {
      require(row.size() == dataset.fields.size(),
              fmt::format("a row of dataset {} has {} values for {} fields", name, row.size(), dataset.fields.size()));
    }
  }
  for (const Section& section : report.sections) {
    require(ids.insert("section " + section.id).second, "section " + section.id + " comes twice");
    for (const Chart& chart : section.charts) {
      require(ids.insert("chart " + chart.id).second, "chart " + chart.id + " comes twice");
      check_chart(chart, report);
    }
    for (const Table& table : section.tables) check_table(table, section.id);
  }
}

}  // namespace layline::report
