#include "layline/runs/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "layline/base/error.h"

namespace layline::runs {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string position(const std::string& file, int64_t line) { return fmt::format("{}:{}", file, line); }

// libcsv behind an object. It is fed line by line, so that every row knows where it began.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI);
    csv_set_space_func(&parser_, [](unsigned char) { return 0; });
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { csv_free(&parser_); }

  std::vector<CsvRow> read(std::string_view text) {
    while (!text.empty()) {
      const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
      read_line(text.substr(0, length));
      text.remove_prefix(length);
    }
    if (csv_fini(&parser_, on_field, on_row, this) != 0) {
      throw base::InputError(position(file_, row_line_), "the quote that opens here is never closed");
    }
    return std::move(rows_);
  }

 private:
  void read_line(std::string_view line) {
    ++line_;
    if (!inside_row_) row_line_ = line_;
    if (csv_parse(&parser_, line.data(), line.size(), on_field, on_row, this) != line.size()) {
      throw base::InputError(position(file_, line_), fail_reason());
    }
    const bool blank = line == "\n" || line == "\r\n" || line == "\r";
    inside_row_ = !row_ended_ && (inside_row_ || !blank);
    row_ended_ = false;
  }

  std::string fail_reason() {
    if (csv_error(&parser_) != CSV_EPARSE) return csv_strerror(csv_error(&parser_));
    return fmt::format(
        "a quote inside a field (after {} fields of the row); quote the whole field and double the quote",
        current_.size());
  }

  // Exceptions must not cross libcsv's frames, so errors in the data are looked for afterwards.
  static void on_field(void* data, size_t size, void* self) noexcept {
    static_cast<Reader*>(self)->current_.emplace_back(static_cast<const char*>(data), size);
  }
  static void on_row(int, void* self) noexcept {
    auto& reader = *static_cast<Reader*>(self);
    reader.rows_.push_back({reader.row_line_, std::move(reader.current_)});
    reader.current_.clear();
    reader.row_ended_ = true;
  }

  const std::string& file_;
  csv_parser parser_ = {};
  std::vector<std::string> current_;
  std::vector<CsvRow> rows_;
  int64_t line_ = 0;
  int64_t row_line_ = 1;
  bool inside_row_ = false;
  bool row_ended_ = false;
};

void refuse_nul_bytes(std::string_view text, const std::string& file) {
  const size_t found = text.find('\0');
  if (found == std::string_view::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(found), '\n');
  throw base::InputError(position(file, line), "a NUL byte; this is no text file");
}

void check_header(const CsvRow& header, const std::string& file) {
  std::set<std::string_view> seen;
  for (size_t i = 0; i < header.fields.size(); ++i) {
    const std::string& name = header.fields[i];
    if (name.empty()) {
      throw base::InputError(position(file, header.line), fmt::format("column {} has no name", i + 1));
    }
    if (!seen.insert(name).second) {
      throw base::InputError(position(file, header.line), fmt::format("column \"{}\" is there twice", name));
    }
  }
}

void check_field_count(const CsvRow& row, size_t expected, const std::string& file) {
  if (row.fields.size() == expected) return;
  throw base::InputError(position(file, row.line),
                         fmt::format("{} fields, but the header has {}", row.fields.size(), expected));
}

// Unquoted, a byte order mark would be taken for the file's own.
bool needs_quotes(std::string_view field) {
  return field.find_first_of(",\"\r\n") != std::string_view::npos || field.starts_with(kByteOrderMark);
}

std::string quoted(std::string_view field) {
  std::string text = "\"";
  for (const char c : field) text.append(c == '"' ? 2 : 1, c);
  return text + '"';
}

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& file) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  refuse_nul_bytes(text, file);
  std::vector<CsvRow> rows = Reader(file).read(text);
  if (rows.empty()) throw base::InputError(file, "the file is empty; want a header and rows");
  check_header(rows.front(), file);
  CsvTable table;
  table.header = std::move(rows.front().fields);
  rows.erase(rows.begin());
  for (const CsvRow& row : rows) check_field_count(row, table.header.size(), file);
  table.rows = std::move(rows);
  return table;
}

std::string format_csv_row(const std::vector<std::string>& fields) {
  // A lone empty field unquoted would be a blank line, which is no row.
  if (fields.size() == 1 && fields.front().empty()) return "\"\"\n";
  std::string row;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) row += ',';
    const std::string& field = fields[i];
    row += needs_quotes(field) ? quoted(field) : field;
  }
  return row + '\n';
}

std::string format_csv(const CsvTable& table) {
  std::string text = format_csv_row(table.header);
  for (const CsvRow& row : table.rows) text += format_csv_row(row.fields);
  return text;
}

}  // namespace layline::runs
