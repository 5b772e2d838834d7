// Errors that the user can mend.
//
// Throw InputError for bad input: a spec, a layout text, a CSV row, a flag. Its message is one line that says where,
// what was found and what is allowed. Only main() catches it (exit code 2). An infeasible layout is not an error but a
// value (layout::Legality); a mistake of our own is an assert.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace layline::base {

class InputError : public std::runtime_error {
 public:
  // where: file and JSON path, flag, or CSV row and column; what: what was found and what is allowed.
  InputError(std::string_view where, std::string_view what);
  explicit InputError(std::string_view message);
};

// What the user's input did not cause while the work was going on: a full disk, a device that fails (exit code 1).
class RunError : public std::runtime_error {
 public:
  RunError(std::string_view where, std::string_view what);
};

// The entry of `known` nearest to `name` by edit distance (case-insensitive), or "" when none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// `no <kind> "<name>" (did you mean "<nearest>"?)`, or with the list of what is known when none is near.
std::string unknown_name_message(std::string_view kind, std::string_view name, const std::vector<std::string>& known);

}  // namespace layline::base
