// CSV and run records: whatever parses is written and read back to the same fields; all else is an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layline/base/error.h"
#include "layline/runs/csv.h"
#include "layline/runs/run_appender.h"
#include "layline/runs/run_record.h"

namespace {

namespace base = layline::base;
namespace runs = layline::runs;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_csv(std::string_view text) {
  const runs::CsvTable table = runs::parse_csv(text, "fuzz.csv");
  const runs::CsvTable again = runs::parse_csv(runs::format_csv(table), "again.csv");
  require(again.header == table.header && again.rows.size() == table.rows.size());
  for (size_t i = 0; i < table.rows.size(); ++i) require(again.rows[i].fields == table.rows[i].fields);
}

void check_runs(std::string_view text) {
  for (const runs::RunRecord& run : runs::parse_runs(text, "fuzz.csv").records) {
    const std::string again = runs::format_csv_row(runs::run_columns()) + runs::format_csv_row(runs::to_fields(run));
    const runs::RunTable table = runs::parse_runs(again, "again.csv");
    require(runs::to_fields(table.records.at(0)) == runs::to_fields(run));
    require(!runs::sweep_name(run).empty());
    if (const auto seconds = runs::step_seconds(run)) require(*seconds > 0);
  }
}

template <typename Check>
void run_check(Check check, std::string_view text) {
  try {
    check(text);
  } catch (const base::InputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  run_check(check_csv, text);
  run_check(check_runs, text);
  const int64_t complete = runs::complete_rows_bytes(text);
  require(complete >= 0 && complete <= static_cast<int64_t>(size));
  return 0;
}
