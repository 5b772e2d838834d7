// CSV as RFC 4180 has it: quoted fields may hold commas, quotes and line ends; CRLF and LF both end a row; a byte order
// mark is skipped; blank lines are no rows. Blanks beside commas belong to the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace layline::runs {

struct CsvRow {
  int64_t line = 0;  // of the file, from 1, where the row begins
  std::vector<std::string> fields;
};

struct CsvTable {
  std::vector<std::string> header;
  std::vector<CsvRow> rows;  // each with as many fields as the header
};

// Parses `text`; `file` names it in errors. Throws base::InputError with file and line: an empty file, an empty or
// duplicate column name, a row with another number of fields than the header, a stray or unterminated quote, a NUL
// byte.
CsvTable parse_csv(std::string_view text, const std::string& file);

// One row with its line end (LF). Quotes only the fields that need it, so well-formed input comes out as it went in.
std::string format_csv_row(const std::vector<std::string>& fields);

std::string format_csv(const CsvTable& table);

}  // namespace layline::runs
