#include "layline/runs/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/runs/csv.h"
#include "layline/runs/run_columns.h"

namespace layline::runs {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Positions in the file's header that are read, and the column each of them is.
struct KnownColumns {
  std::vector<size_t> positions;
  std::vector<const RunColumn*> columns;
};

KnownColumns known_columns(const std::vector<std::string>& header, const std::string& file) {
  KnownColumns known;
  for (size_t i = 0; i < header.size(); ++i) {
    if (contains(prediction_columns(), header[i])) continue;
    const RunColumn* column = find_run_column(header[i]);
    if (column == nullptr) {
      throw base::InputError(file + ":1", base::unknown_name_message("column", header[i], run_columns()));
    }
    known.positions.push_back(i);
    known.columns.push_back(column);
  }
  return known;
}

void check_required_columns(const std::vector<std::string>& header, const std::string& file) {
  std::vector<std::string> missing;
  for (const std::string& name : required_run_columns()) {
    if (!contains(header, name)) missing.push_back(name);
  }
  if (missing.empty()) return;
  throw base::InputError(file + ":1", fmt::format("missing column{} {}; run records need them in the header",
                                                  missing.size() > 1 ? "s" : "", fmt::join(missing, ", ")));
}

RunRecord to_record(CsvRow& row, const KnownColumns& known, const std::string& file) {
  RunRecord record;
  record.line = row.line;
  record.fields.reserve(known.columns.size());
  for (size_t i = 0; i < known.columns.size(); ++i) {
    std::string& field = row.fields[known.positions[i]];
    const RunColumn& column = *known.columns[i];
    if (!field.empty()) {
      set_from_text(record, column, field, fmt::format("{}:{}:{}", file, row.line, column.name));
    }
    record.fields.push_back(std::move(field));
  }
  return record;
}

std::string stated(const std::optional<int64_t>& value) { return value ? fmt::format("{}", *value) : "?"; }

}  // namespace

const std::vector<std::string>& run_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const RunColumn& column : run_column_table()) result.push_back(column.name);
    return result;
  }();
  return names;
}

const std::vector<std::string>& prediction_columns() {
  static const std::vector<std::string> names = {"predicted_step_seconds",
                                                 "predicted_memory_first_stage_bytes",
                                                 "predicted_memory_last_stage_bytes",
                                                 "predicted_memory_max_bytes",
                                                 "predicted_verdict",
                                                 "fit_probability",
                                                 "verdict_margin_bytes",
                                                 "reason"};
  return names;
}

RunTable read_runs(const std::string& path) { return parse_runs(base::read_file(path), path); }

RunTable parse_runs(std::string_view text, const std::string& file) {
  CsvTable csv = parse_csv(text, file);
  const KnownColumns known = known_columns(csv.header, file);
  check_required_columns(csv.header, file);
  RunTable table{.file = file, .columns = {}, .records = {}};
  for (const size_t position : known.positions) table.columns.push_back(csv.header[position]);
  table.records.reserve(csv.rows.size());
  for (CsvRow& row : csv.rows) table.records.push_back(to_record(row, known, file));
  return table;
}

std::vector<std::string> to_fields(const RunRecord& record) {
  std::vector<std::string> fields;
  for (const RunColumn& column : run_column_table()) fields.push_back(to_text(record, column));
  return fields;
}

void write_runs(const std::string& path, const std::vector<RunRecord>& records) {
  std::string text = format_csv_row(run_columns());
  for (const RunRecord& record : records) text += format_csv_row(to_fields(record));
  base::write_file_atomically(path, text);
}

std::optional<int64_t> num_gpus(const RunRecord& record) {
  if (record.gpus_total) return record.gpus_total;
  if (!record.tp || !record.pp || !record.dp) return std::nullopt;
  int64_t product = 1;
  for (const int64_t axis : {*record.tp, *record.pp, *record.dp, record.cp.value_or(1)}) {
    if (__builtin_mul_overflow(product, axis, &product)) return std::nullopt;
  }
  return product;
}

std::optional<double> step_seconds(const RunRecord& record) {
  if (record.step_time_s) return record.step_time_s;
  const std::optional<int64_t> gpus = num_gpus(record);
  if (!gpus || !record.tokens_per_s_per_gpu || !record.global_batch_sequences || !record.seq_len) {
    return std::nullopt;
  }
  const double tokens = static_cast<double>(*record.global_batch_sequences) * static_cast<double>(*record.seq_len);
  return tokens / (*record.tokens_per_s_per_gpu * static_cast<double>(*gpus));
}

std::string note(const RunRecord& record, std::string_view key) {
  std::string_view notes = record.notes;
  while (!notes.empty()) {
    const size_t length = std::min(notes.find(';'), notes.size());
    std::string_view part = notes.substr(0, length);
    notes.remove_prefix(std::min(length + 1, notes.size()));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (!part.starts_with(key) || part.substr(key.size(), 1) != "=") continue;
    part.remove_prefix(key.size() + 1);
    return std::string(part.substr(0, part.find_last_not_of(' ') + 1));
  }
  return "";
}

std::string sweep_name(const RunRecord& record) {
  std::string name = note(record, "sweep");
  if (!name.empty()) return name;
  return fmt::format("{}, {} GPUs, seq {}, batch {}", record.model.empty() ? "?" : record.model,
                     stated(num_gpus(record)), stated(record.seq_len), stated(record.global_batch_sequences));
}

}  // namespace layline::runs
