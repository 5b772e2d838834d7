// Fewer rows of a CSV text that has too many for a report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace layline::report {

// Data rows of the text, by its line ends outside quotes; blank lines do not count. No checking.
int64_t count_csv_rows(std::string_view text);

// The header and `num_rows` of the data rows, evenly spread over the text; all when there are not more.
std::string sample_csv_rows(std::string_view text, int64_t num_rows);

}  // namespace layline::report
