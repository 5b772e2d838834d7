#include "apps/layline/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace layline::app {
namespace {

constexpr int kDefaultWidth = 100;
constexpr int kMinimumWidth = 60;

bool locale_is_ascii() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return std::strcmp(value, "C") == 0 || std::strcmp(value, "POSIX") == 0;
  }
  return false;
}

}  // namespace

base::TextStyle text_style() {
  base::TextStyle style;
  style.width = kDefaultWidth;
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = std::clamp<int>(size.ws_col, kMinimumWidth, 200);
  }
  style.unicode = !locale_is_ascii();
  return style;
}

std::unique_ptr<base::ProgressSink> progress_sink() {
  if (isatty(STDERR_FILENO) == 0) return nullptr;
  const auto write = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return std::make_unique<base::ProgressLine>(write, text_style());
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw std::runtime_error("cannot write to standard output");
  }
}

}  // namespace layline::app
