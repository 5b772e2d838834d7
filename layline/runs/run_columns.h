// The one list of the columns of run records: name, member, what values are allowed.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "layline/runs/run_record.h"

namespace layline::runs {

struct TextColumn {
  std::string RunRecord::* member;
  std::vector<std::string> allowed;  // empty: any text
};
struct WholeNumberColumn {
  std::optional<int64_t> RunRecord::* member;
  int64_t lower, upper;
};
struct NumberColumn {
  std::optional<double> RunRecord::* member;
  double lower, upper;
};
struct FlagColumn {
  std::optional<bool> RunRecord::* member;
};
struct StatusColumn {
  std::optional<RunStatus> RunRecord::* member;
};

struct RunColumn {
  std::string name;
  std::variant<TextColumn, WholeNumberColumn, NumberColumn, FlagColumn, StatusColumn> kind;
};

const std::vector<RunColumn>& run_column_table();

// nullptr when there is no such column.
const RunColumn* find_run_column(std::string_view name);

// Columns without which no row of a file could be used.
const std::vector<std::string>& required_run_columns();

// Sets the member from a field that is not empty. Throws base::InputError; `where` is file, line and column.
void set_from_text(RunRecord& record, const RunColumn& column, std::string_view text, const std::string& where);

// The member as a field, "" when it is not stated. Numbers read back to the same value.
std::string to_text(const RunRecord& record, const RunColumn& column);

}  // namespace layline::runs
