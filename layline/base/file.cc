#include "layline/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "layline/base/error.h"
#include "layline/base/file_descriptor.h"

namespace layline::base {
namespace {

namespace fs = std::filesystem;

std::string reason() { return std::strerror(errno); }

std::string too_large(int64_t limit_bytes) {
  return fmt::format("the file is larger than {} bytes, the most that is read", limit_bytes);
}

// The file that `path` stands for once symbolic links are followed.
std::string link_target(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : fs::path(path);
  return error ? path : target.string();
}

bool is_special(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

mode_t mode_for(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0) return info.st_mode & 07777;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

using Pieces = std::span<const std::string_view>;

void write_special(const std::string& path, Pieces pieces) {
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) throw InputError(path, fmt::format("cannot write: {}", reason()));
  for (const std::string_view piece : pieces) write_fully(file.get(), piece, path);
}

void write_temporary(int file_descriptor, Pieces pieces, mode_t mode, const std::string& path) {
  for (const std::string_view piece : pieces) write_fully(file_descriptor, piece, path);
  if (::fchmod(file_descriptor, mode) != 0 || ::fsync(file_descriptor) != 0) {
    throw RunError(path, fmt::format("cannot write: {}", reason()));
  }
}

}  // namespace

std::string read_file(const std::string& path, int64_t limit_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw InputError(path, fmt::format("cannot read: {}", reason()));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) throw InputError(path, fmt::format("cannot read: {}", reason()));
  if (S_ISDIR(info.st_mode)) throw InputError(path, "is a folder, not a file");
  if (S_ISREG(info.st_mode) && info.st_size > limit_bytes) throw InputError(path, too_large(limit_bytes));

  std::string content;
  if (S_ISREG(info.st_mode)) content.reserve(static_cast<size_t>(info.st_size));
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw InputError(path, fmt::format("cannot read: {}", reason()));
    if (count == 0) return content;
    content.append(buffer.data(), static_cast<size_t>(count));
    if (static_cast<int64_t>(content.size()) > limit_bytes) throw InputError(path, too_large(limit_bytes));
  }
}

void write_fully(int file_descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(file_descriptor, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw RunError(path, fmt::format("cannot write: {}", reason()));
    content.remove_prefix(static_cast<size_t>(count));
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, Pieces(&content, 1));
}

void write_file_atomically(const std::string& path, Pieces pieces) {
  if (path.empty()) throw InputError("output file", "the path is empty");
  if (is_special(path)) return write_special(path, pieces);
  const std::string target = link_target(path);
  std::error_code error;
  if (fs::is_directory(target, error)) throw InputError(path, "is a folder, not a file");

  std::string temporary = target + ".XXXXXX";
  const FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) throw InputError(path, fmt::format("cannot write: {}", reason()));
  try {
    write_temporary(file.get(), pieces, mode_for(target), path);
    if (::rename(temporary.c_str(), target.c_str()) != 0) {
      throw InputError(path, fmt::format("cannot replace: {}", reason()));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder_of(target);
}

void sync_folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const FileDescriptor file(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder; the file itself is safe by then.
  if (file.get() >= 0) ::fsync(file.get());
}

}  // namespace layline::base
