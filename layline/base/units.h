// Quantities as people read and write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace layline::base {

inline constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

// "71.2": the number for a column headed GiB.
std::string format_gib(double bytes, int num_decimals = 1);

// "71.2 GiB", "12 MiB", "640 B": the largest binary unit that leaves at least 1.
std::string format_bytes(double bytes);

// "740 ns", "3 ms", "26.5 s", "4 min 10 s", "3 h 20 min", "12.5 days"; three digits or two units.
std::string format_seconds(double seconds);

// "1,284".
std::string format_count(int64_t count);

// "2,470", "2,470.5": a number with thousands separators.
std::string format_number(double value, int num_decimals = 0);

// "14.0 B", "125 M", "8.9 T": thousands as K, M, B, T with three digits.
std::string format_short_count(double count);

// "70.6 %" of a fraction; for a column headed % without the sign.
std::string format_percent(double fraction, int num_decimals = 1);
std::string format_percent_number(double fraction, int num_decimals = 1);

// Bytes from "2000000000", "80GiB", "80 GB", "1.5 TiB" (decimal and binary units, case-insensitive), at least 0 and
// below 2^63. Throws InputError naming `where`.
int64_t parse_bytes(std::string_view text, std::string_view where);

// Seconds from "90", "90s", "1.5h", "10 min", "2d", "50ms". Throws InputError naming `where`.
double parse_seconds(std::string_view text, std::string_view where);

// A count from "1284", "1,284", "300e9", "300B", "125M"; whole, within [lower, upper]. Throws InputError naming
// `where`.
int64_t parse_count(std::string_view text, int64_t lower, int64_t upper, std::string_view where);

}  // namespace layline::base
