#include "layline/trainer/formats/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "layline/base/error.h"

namespace layline::trainer::formats {

using base::InputError;

namespace {

std::string reason() { return std::generic_category().message(errno); }

std::span<const std::byte> map(int file, const std::string& path) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) throw InputError(path, fmt::format("cannot read: {}", reason()));
  if (S_ISDIR(info.st_mode)) throw InputError(path, "is a folder, not a file");
  if (!S_ISREG(info.st_mode)) throw InputError(path, "is a pipe or device; only a regular file can be mapped");
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return {};
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  if (start == MAP_FAILED) throw InputError(path, fmt::format("cannot map {} bytes: {}", size, reason()));
  return {static_cast<const std::byte*>(start), size};
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
  // Not to block on a pipe that nobody writes to.
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) throw InputError(path_, fmt::format("cannot read: {}", reason()));
  try {
    bytes_ = map(file, path_);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace layline::trainer::formats
