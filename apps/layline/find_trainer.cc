#include "apps/layline/find_trainer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "layline/base/error.h"

namespace layline::app {
namespace {

// Beside this program.
std::string default_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "layline-train").string();
}

}  // namespace

std::string find_trainer(const std::string& program) {
  const std::string found = program.empty() ? default_program() : program;
  if (access(found.c_str(), X_OK) == 0) return found;
  throw base::InputError(
      fmt::format("{} was not built, and it is what trains: get libtorch with "
                  "`scripts/setup.sh torch`, then build everything with `make`",
                  found));
}

}  // namespace layline::app
