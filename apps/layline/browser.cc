#include "apps/layline/browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "layline/base/error.h"
#include "layline/base/file.h"

namespace layline::app {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDrawingSeconds{180};

// Goes with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    if (error) throw base::InputError("TMPDIR", "is no folder");
    std::string name = (parent / "layline-charts-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw base::RunError(name, "cannot make a temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// What comes until the end, or until kDrawingSeconds are over; nothing then.
std::optional<std::string> read_all(int descriptor) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  const auto end = std::chrono::steady_clock::now() + kDrawingSeconds;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waiting{descriptor, POLLIN, 0};
    const int ready = left.count() > 0 ? ::poll(&waiting, 1, static_cast<int>(left.count())) : 0;
    if (ready == 0) return std::nullopt;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
  }
}

// What the program prints; its errors go nowhere. Throws base::RunError when it cannot start or fails.
std::string output_of(std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw base::RunError(arguments.front(), "cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t process = 0;
  const int error = ::posix_spawn(&process, argv.front(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    throw base::RunError(arguments.front(), "cannot be started");
  }
  const std::optional<std::string> text = read_all(ends[0]);
  ::close(ends[0]);
  if (!text) ::kill(process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) {
    throw base::RunError(arguments.front(),
                         fmt::format("did not draw the charts within {} s", kDrawingSeconds.count()));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw base::RunError(arguments.front(), "failed to draw the charts");
  return *text;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  if (from == std::string::npos) return "";
  const size_t to = text.find(end, from);
  return text.substr(from + begin.size(), to == std::string::npos ? to : to - from - begin.size());
}

}  // namespace

std::string decode_base64(const std::string& text) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < letters.size(); ++i) values[static_cast<unsigned char>(letters[i])] = static_cast<int>(i);
  std::string bytes;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : text) {
    const int value = values[static_cast<unsigned char>(c)];
    if (value < 0) continue;
    bits = (bits << 6) | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    bytes += static_cast<char>((bits >> num_bits) & 0xff);
  }
  return bytes;
}

std::string find_browser() {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}) {
    size_t at = 0;
    while (at <= folders.size()) {
      const size_t end = std::min(folders.find(':', at), folders.size());
      const std::string file = folders.substr(at, end - at) + "/" + name;
      at = end + 1;
      if (::access(file.c_str(), X_OK) == 0 && !fs::is_directory(file)) return file;
    }
  }
  return "";
}

std::map<std::string, ChartImage> draw_charts(const std::string& browser, const std::string& page) {
  const TemporaryFolder folder;
  base::write_file_atomically(folder.file("charts.html"), page);
  std::vector<std::string> arguments = {browser,
                                        "--headless",
                                        "--disable-gpu",
                                        "--hide-scrollbars",
                                        "--no-first-run",
                                        "--user-data-dir=" + folder.file("profile"),
                                        "--virtual-time-budget=60000",
                                        "--dump-dom",
                                        "file://" + folder.file("charts.html")};
  // Chromium's sandbox refuses to run as root.
  if (::geteuid() == 0) arguments.insert(arguments.begin() + 1, "--no-sandbox");
  const std::string drawn = between(output_of(arguments), "<pre id=\"layline-charts\">", "</pre>");
  const auto charts = nlohmann::json::parse(decode_base64(drawn), nullptr, false);
  if (!charts.is_object()) throw base::RunError(browser, "drew no charts");
  std::map<std::string, ChartImage> images;
  for (const auto& [id, chart] : charts.items()) {
    if (chart.contains("error")) throw base::RunError("chart " + id, chart["error"].get<std::string>());
    images[id] = {chart.at("svg").get<std::string>(), decode_base64(chart.at("png").get<std::string>())};
  }
  return images;
}

}  // namespace layline::app
