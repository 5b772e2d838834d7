// Tables of layline/study as tables of a report.
#pragma once

#include <string>
#include <vector>

#include "layline/report/figure.h"
#include "layline/study/tables.h"

namespace layline::report {

// Columns of nothing but numbers and signs are aligned as such.
Table table_of(const study::Table& table, const std::string& title);

// Gains of `field` "gain" along x, a point each, for every "rule" along y; `colour` is a field of the dataset.
nlohmann::json gains_spec(const std::string& dataset, const std::vector<std::string>& rules, const std::string& colour,
                          const std::vector<std::pair<std::string, std::string>>& tooltips);

}  // namespace layline::report
