#include "layline/report/writers.h"

namespace layline::report {
namespace {

using nlohmann::ordered_json;

ordered_json table_json(const Table& table) {
  ordered_json json;
  json["title"] = table.title;
  json["columns"] = ordered_json::array();
  for (const TableColumn& column : table.columns) json["columns"].push_back(column.title);
  json["rows"] = table.rows;
  if (!table.note.empty()) json["note"] = table.note;
  return json;
}

ordered_json chart_json(const Chart& chart) {
  ordered_json json;
  json["id"] = chart.id;
  json["title"] = chart.title;
  json["description"] = chart.description;
  json["vega_lite"] = chart.spec;
  json["table"] = table_json(chart.table);
  return json;
}

ordered_json section_json(const Section& section) {
  ordered_json json;
  json["id"] = section.id;
  json["title"] = section.title;
  json["text"] = section.text;
  json["charts"] = ordered_json::array();
  for (const Chart& chart : section.charts) json["charts"].push_back(chart_json(chart));
  json["tables"] = ordered_json::array();
  for (const Table& table : section.tables) json["tables"].push_back(table_json(table));
  return json;
}

}  // namespace

std::string to_json_text(const Report& report) {
  check_report(report);
  ordered_json json;
  json["schema_version"] = 1;
  json["title"] = report.title;
  json["text"] = report.text;
  json["sections"] = ordered_json::array();
  for (const Section& section : report.sections) json["sections"].push_back(section_json(section));
  json["datasets"] = ordered_json::object();
  for (const auto& [name, dataset] : report.datasets) {
    json["datasets"][name] = {{"fields", dataset.fields}, {"rows", dataset.rows}};
  }
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace layline::report
