// A file seen as memory, read on demand by the operating system: opening takes no time, whatever the size.
//
// The file must not be made shorter while it is mapped: reading what is gone ends the process, as does a disk that
// fails.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace layline::trainer::formats {

class MappedFile {
 public:
  // Throws base::InputError when `path` is missing, no regular file, or unreadable.
  explicit MappedFile(std::string path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace layline::trainer::formats
