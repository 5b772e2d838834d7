#include "layline/sweep/scratch.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "layline/base/error.h"

namespace layline::sweep {

Scratch::Scratch(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) throw base::InputError(folder_, fmt::format("cannot make this folder: {}", error.message()));
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace layline::sweep
