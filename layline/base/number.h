// Numbers from text, whole and in range or an error: no silent overflow, no NaN, nothing left over.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace layline::base {

// The whole number that `text` is, with nothing before or after it. "8.0" is 8, as spreadsheets write it. Throws
// InputError naming `where`, the text and the allowed range.
int64_t parse_whole_number(std::string_view text, int64_t lower, int64_t upper, std::string_view where);

// The finite number that `text` is ("1e9" and "300e9" too), within [lower, upper]. Throws InputError likewise.
double parse_number(std::string_view text, double lower, double upper, std::string_view where);

// The same without a range and an error: nothing when `text` is no such number or does not fit the type.
std::optional<int64_t> to_whole_number(std::string_view text);
std::optional<double> to_number(std::string_view text);

}  // namespace layline::base
