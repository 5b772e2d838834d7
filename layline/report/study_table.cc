#include "layline/report/study_table.h"

#include <algorithm>
#include <string_view>

#include "layline/report/cells.h"
#include "layline/report/vega_spec.h"

namespace layline::report {
namespace {

using nlohmann::json;

bool is_like_a_number(const std::string& cell) {
  return cell.find_first_not_of("0123456789.,+-% ") == std::string::npos;
}

}  // namespace

Table table_of(const study::Table& table, const std::string& title) {
  Table result{.title = title};
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool is_number =
        !table.rows.empty() &&
        std::all_of(table.rows.begin(), table.rows.end(), [i](const auto& row) { return is_like_a_number(row[i]); });
    result.columns.push_back(is_number ? number_column(table.columns[i]) : text_column(table.columns[i]));
  }
  for (std::vector<std::string> row : table.rows) {
    for (std::string& cell : row) {
      if (cell.empty()) cell = kNone;
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

json gains_spec(const std::string& dataset, const std::vector<std::string>& rules, const std::string& colour,
                const std::vector<std::pair<std::string, std::string>>& tooltips) {
  json spec = chart_spec(dataset);
  json x = percent("gain", "a step without it takes longer by");
  json y = category("rule", "");
  y["sort"] = rules;
  y["axis"] = {{"labelLimit", 220}};
  const json points = {{"mark", {{"type", "circle"}, {"opacity", 0.55}, {"size", 40}}},
                       {"encoding", {{"color", category(colour, "")}, {"tooltip", tooltip(tooltips)}}}};
  const json zero = {{"mark", {{"type", "rule"}, {"style", "prediction"}}},
                     {"encoding", {{"x", {{"datum", 0}}}, {"y", nullptr}}}};
  spec["transform"] = {filter_transform("isValid(datum.gain)")};
  spec["encoding"] = {{"x", std::move(x)}, {"y", std::move(y)}};
  spec["layer"] = {points, zero};
  spec["height"] = {{"step", 26}};
  return spec;
}

}  // namespace layline::report
