// Numbers as cells of tables; "–" where there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "layline/report/figure.h"
#include "layline/report/report_run.h"

namespace layline::report {

std::string seconds_cell(const std::optional<double>& seconds);                     // "26.54"
std::string percent_cell(const std::optional<double>& fraction, int decimals = 1);  // "70.6" of 0.706
std::string signed_percent_cell(const std::optional<double>& fraction);             // "+3.1"
std::string gib_cell(const std::optional<double>& bytes);                           // "71.2"
std::string count_cell(int64_t count);                                              // "1,284"

inline constexpr const char* kNone = "–";

// `filter_field` as in TableColumn.
TableColumn text_column(const std::string& title, const std::string& filter_field = "");
TableColumn number_column(const std::string& title, const std::string& filter_field = "");

std::optional<double> predicted_seconds(const ReportRun& run);
std::optional<double> predicted_bytes(const ReportRun& run);  // of the rank and in the sense of the record

// A number in datasets: null where there is none, five significant digits otherwise.
nlohmann::json number_or_null(const std::optional<double>& value);

}  // namespace layline::report
