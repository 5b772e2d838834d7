// Pieces of Vega-Lite specifications. Fields are those of runs_dataset.h unless a builder has its own dataset.
//
// Hints for writers are in "usermeta": "cell_width" and "axis_width", pixels that a facet wants and that its labels
// need; "axis_width_of_each", whether every facet has labels; "max_columns" of facets.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace layline::report {

nlohmann::json chart_spec(const std::string& dataset);  // schema and data
nlohmann::json filter_transform(const std::string& expression);
nlohmann::json one_of_transform(const std::string& field, const std::vector<std::string>& values);

// Keeps, of the rows that ran and have an MFU, the one with the highest in each group.
std::vector<nlohmann::json> best_of_transform(const std::vector<std::string>& group_fields);

nlohmann::json quantity(const std::string& field, const std::string& title);
nlohmann::json category(const std::string& field, const std::string& title);  // in the order of the data
nlohmann::json percent(const std::string& field, const std::string& title);   // of a fraction
nlohmann::json tooltip(const std::vector<std::pair<std::string, std::string>>& fields_and_titles);

// Turns a specification of one cell into one with a cell for each value of `field`, in the given order.
nlohmann::json facet(nlohmann::json spec, const std::string& field, const std::vector<std::string>& values,
                     int cell_width, int axis_width);

// What tooltips say of a run.
nlohmann::json run_tooltip();

}  // namespace layline::report
