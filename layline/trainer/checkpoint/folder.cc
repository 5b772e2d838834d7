#include "layline/trainer/checkpoint/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/base/number.h"

namespace layline::trainer::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kSetAside = ".set-aside";

std::string reason() { return std::generic_category().message(errno); }

// None: it is no folder of a step.
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(kPrefix.size());
  const bool is_number =
      !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? base::to_whole_number(digits) : std::nullopt;
}

bool is_committed(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / kManifestName, ignored);
}

std::vector<fs::path> step_folders(const std::string& directory) {
  std::vector<fs::path> folders;
  std::error_code error;
  if (!fs::exists(directory, error) && !error) return folders;
  for (auto entry = fs::directory_iterator(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (step_of(entry->path().filename().string())) folders.push_back(entry->path());
  }
  if (error) throw base::InputError(directory, fmt::format("cannot be read: {}", error.message()));
  return folders;
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::remove(folder / kManifestName, ignored)) base::sync_folder_of((folder / kManifestName).string());
  fs::remove_all(folder, ignored);
}

std::string owner_text() {
  std::string host(256, '\0');
  if (::gethostname(host.data(), host.size() - 1) != 0) host = "?";
  return fmt::format("process {} on {}", ::getpid(), host.c_str());
}

int open_lock(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw base::InputError(directory, fmt::format("cannot be made: {}", error.message()));
  const std::string path = fmt::format("{}/{}", directory, kLockName);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) throw base::InputError(directory, fmt::format("cannot be written: {}", reason()));
  return file;
}

}  // namespace

std::string step_folder(const std::string& directory, int64_t step) {
  return fmt::format("{}/{}{:010}", directory, kPrefix, step);
}

std::vector<int64_t> committed_steps(const std::string& directory) {
  std::vector<int64_t> steps;
  for (const fs::path& folder : step_folders(directory)) {
    if (is_committed(folder)) steps.push_back(*step_of(folder.filename().string()));
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

std::string find_checkpoint(const std::string& path) {
  if (is_committed(path)) return path;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    throw base::InputError(path, "there is no such folder; want a checkpoint, or a folder with checkpoints");
  }
  const std::vector<int64_t> steps = committed_steps(path);
  if (steps.empty()) {
    throw base::InputError(path, fmt::format("is no checkpoint and holds none: want {} in it, or folders {}N that have "
                                             "one",
                                             kManifestName, kPrefix));
  }
  return step_folder(path, steps.front());
}

FolderLock::FolderLock(const std::string& directory) : file_(open_lock(directory)) {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
    const bool is_held = errno == EWOULDBLOCK;
    const std::string why = reason();
    if (!is_held) throw base::InputError(directory, fmt::format("cannot be locked: {}", why));
    const std::string owner = base::read_file(fmt::format("{}/{}", directory, kLockName), 4096);
    throw base::InputError(directory, fmt::format("another run writes its checkpoints there ({})", owner));
  }
  if (::ftruncate(file_.get(), 0) == 0) base::write_fully(file_.get(), owner_text(), directory);
}

void remove_unfinished(const std::string& directory) {
  for (const fs::path& folder : step_folders(directory)) {
    if (!is_committed(folder)) remove_folder(folder);
  }
}

std::vector<std::string> set_aside_after(const std::string& directory, int64_t step) {
  std::vector<std::string> names;
  for (const int64_t later : committed_steps(directory)) {
    if (later <= step) continue;
    const std::string folder = step_folder(directory, later);
    std::string name = folder + std::string(kSetAside);
    for (int count = 2; fs::exists(name); ++count) name = fmt::format("{}{}-{}", folder, kSetAside, count);
    std::error_code error;
    fs::rename(folder, name, error);
    if (error) throw base::InputError(folder, fmt::format("cannot be renamed: {}", error.message()));
    names.push_back(name);
  }
  base::sync_folder_of(directory + "/");
  return names;
}

void prune(const std::string& directory, int64_t keep) {
  const std::vector<int64_t> steps = committed_steps(directory);
  for (size_t i = static_cast<size_t>(keep); i < steps.size(); ++i) remove_step(directory, steps[i]);
}

void remove_step(const std::string& directory, int64_t step) { remove_folder(step_folder(directory, step)); }

void commit(const std::string& folder, const Manifest& manifest) {
  const std::string path = fmt::format("{}/{}", folder, kManifestName);
  try {
    base::sync_folder_of(path);
    base::write_file_atomically(path, to_json(manifest));
    base::sync_folder_of(folder);
  } catch (const base::InputError& error) {
    throw base::RunError(path, error.what());
  }
}

}  // namespace layline::trainer::checkpoint
