#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "layline/report/escape.h"
#include "layline/report/web_files.h"
#include "layline/report/writers.h"

namespace layline::report {
namespace {

using nlohmann::json;

constexpr size_t kWideCell = 60;  // characters from which a cell may break its line

// A column of a dataset; texts as positions in a list of words when that is shorter.
json column_json(const Dataset& dataset, size_t column) {
  std::map<std::string, size_t> positions;
  json words = json::array(), at = json::array(), plain = json::array();
  bool has_text = false;
  for (const std::vector<json>& row : dataset.rows) {
    const json& value = row[column];
    plain.push_back(value);
    if (!value.is_string()) {
      at.push_back(-1);
      continue;
    }
    has_text = true;
    const auto [found, is_new] = positions.emplace(value.get<std::string>(), positions.size());
    if (is_new) words.push_back(value);
    at.push_back(found->second);
  }
  if (!has_text) return plain;
  return {{"words", words}, {"at", at}};
}

json datasets_json(const Report& report) {
  json datasets = json::object();
  for (const auto& [name, dataset] : report.datasets) {
    json columns = json::array();
    for (size_t c = 0; c < dataset.fields.size(); ++c) columns.push_back(column_json(dataset, c));
    datasets[name] = {{"fields", dataset.fields}, {"columns", columns}, {"size", dataset.rows.size()}};
  }
  return datasets;
}

json charts_json(const Report& report, bool with_titles) {
  json charts = json::object();
  for (const Section& section : report.sections) {
    for (const Chart& chart : section.charts) {
      charts[chart.id] = chart.spec;
      if (with_titles) charts[chart.id]["title"] = chart.title;
    }
  }
  return charts;
}

std::string data_script(const Report& report, bool with_titles) {
  const json data = {{"datasets", datasets_json(report)}, {"charts", charts_json(report, with_titles)}};
  return fmt::format("<script type=\"application/json\" id=\"report-data\">{}</script>\n", script_json(data));
}

void add_script(std::string& page, std::string_view script) {
  page += "<script>";
  page += script;
  page += "</script>\n";
}

void add_paragraphs(std::string& page, const std::vector<std::string>& text) {
  for (const std::string& paragraph : text) page += fmt::format("<p>{}</p>\n", escape_html(paragraph));
}

void add_row(std::string& page, const Table& table, const std::vector<std::string>& row) {
  page += "<tr>";
  for (size_t c = 0; c < row.size(); ++c) {
    const char* kind =
        table.columns[c].is_number ? " class=\"number\"" : (row[c].size() > kWideCell ? " class=\"wide\"" : "");
    page += c == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", kind, escape_html(row[c]))
                   : fmt::format("<td{}>{}</td>", kind, escape_html(row[c]));
  }
  page += "</tr>\n";
}

void add_table(std::string& page, const Table& table) {
  page += fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n<table>\n<caption>{}</caption>\n"
      "<thead><tr>",
      escape_html(table.title), escape_html(table.title));
  for (const TableColumn& column : table.columns) {
    const std::string field =
        column.filter_field.empty() ? "" : fmt::format(" data-field=\"{}\"", escape_html(column.filter_field));
    page += fmt::format("<th scope=\"col\"{}{}>{}</th>", column.is_number ? " class=\"number\"" : "", field,
                        escape_html(column.title));
  }
  page += "</tr></thead>\n<tbody>\n";
  const size_t num_rows = std::min(table.rows.size(), kMaxTableRows);
  for (size_t i = 0; i < num_rows; ++i) add_row(page, table, table.rows[i]);
  page += "</tbody>\n</table>\n</div>\n";
  if (num_rows < table.rows.size()) {
    page += fmt::format("<p class=\"note\">The first {} of {} rows; --format json has all.</p>\n", num_rows,
                        table.rows.size());
  }
  if (!table.note.empty()) page += fmt::format("<p class=\"note\">{}</p>\n", escape_html(table.note));
}

void add_chart(std::string& page, const Chart& chart) {
  const std::string id = escape_html(chart.id), title = escape_html(chart.title);
  const std::string description = escape_html(chart.description);
  page += fmt::format(
      "<figure data-chart=\"{0}\" aria-labelledby=\"title-{0}\">\n<figcaption><h3 id=\"title-{0}\">{1}</h3>"
      "<p>{2}</p></figcaption>\n<div class=\"chart\" role=\"img\" aria-label=\"{1}. {2}\"></div>\n",
      id, title, description);
  if (!chart.table.empty()) {
    page += fmt::format("<details><summary>The numbers: {}</summary>\n", escape_html(chart.table.title));
    add_table(page, chart.table);
    page += "</details>\n";
  }
  page += "</figure>\n";
}

void add_section(std::string& page, const Section& section) {
  const std::string id = escape_html(section.id);
  page += fmt::format("<section id=\"{0}\" aria-labelledby=\"heading-{0}\">\n<h2 id=\"heading-{0}\">{1}</h2>\n", id,
                      escape_html(section.title));
  add_paragraphs(page, section.text);
  for (const Chart& chart : section.charts) add_chart(page, chart);
  for (const Table& table : section.tables) add_table(page, table);
  page += "</section>\n";
}

void add_filters(std::string& page, const std::vector<Filter>& filters) {
  if (filters.empty()) return;
  page += "<form class=\"filters\" aria-label=\"Filters\" autocomplete=\"off\">\n";
  for (const Filter& filter : filters) {
    page += fmt::format("<label>{} <select data-field=\"{}\"><option value=\"\">all</option>",
                        escape_html(filter.label), escape_html(filter.field));
    for (const std::string& value : filter.values) {
      page += fmt::format("<option value=\"{0}\">{0}</option>", escape_html(value));
    }
    page += "</select></label>\n";
  }
  page += "<button type=\"reset\">Show all</button> <output id=\"filter-status\" role=\"status\"></output>\n</form>\n";
}

void add_head(std::string& page, const Report& report) {
  page +=
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  page += fmt::format("<title>{}</title>\n<style>\n", escape_html(report.title));
  page += page_style();
  page += "</style>\n</head>\n";
}

void add_navigation(std::string& page, const std::vector<Section>& sections) {
  page += "<nav aria-label=\"Sections\"><ul>\n";
  for (const Section& section : sections) {
    page += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", escape_html(section.id), escape_html(section.title));
  }
  page += "</ul></nav>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  check_report(report);
  std::string page;
  add_head(page, report);
  page += "<body>\n<a class=\"skip\" href=\"#content\">Skip to the content</a>\n";
  page += fmt::format("<header>\n<h1>{}</h1>\n", escape_html(report.title));
  add_paragraphs(page, report.text);
  page += "</header>\n";
  add_navigation(page, report.sections);
  add_filters(page, report.filters);
  page +=
      "<noscript><p>Charts are drawn by a script; the tables below hold the same numbers without it.</p></noscript>\n"
      "<main id=\"content\">\n";
  for (const Section& section : report.sections) add_section(page, section);
  page +=
      "</main>\n<footer><p>Made by Layline. The charts are drawn by Vega-Lite, which is part of this file; nothing is "
      "loaded from elsewhere.</p></footer>\n";
  page += data_script(report, false);
  for (const std::string_view script : {vega_script(), vega_lite_script(), charts_script(), page_script()}) {
    add_script(page, script);
  }
  page += "</body>\n</html>\n";
  return page;
}

std::string to_export_page(const Report& report) {
  check_report(report);
  std::string page =
      "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<title>charts</title>\n</head>\n<body>\n";
  page += data_script(report, true);
  for (const std::string_view script : {vega_script(), vega_lite_script(), charts_script(), export_script()}) {
    add_script(page, script);
  }
  page += "</body>\n</html>\n";
  return page;
}

}  // namespace layline::report
