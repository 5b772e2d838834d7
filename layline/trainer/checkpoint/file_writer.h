// Large files, written at the speed of the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace layline::trainer::checkpoint {

struct FilePart {
  int64_t begin_bytes = 0;
  std::span<const std::byte> bytes;
};

// Writes the file, by several threads and past the page cache where the file system has that, and has it on disk when
// it returns. Parts do not overlap; what is between them is zero. Returns the file's size. Throws base::RunError when
// writing fails, or when `is_cancelled`, which several threads ask between two writes, says so; what there is of the
// file then stays.
int64_t write_new_file(const std::string& path, std::vector<FilePart> parts, const std::function<bool()>& is_cancelled);

}  // namespace layline::trainer::checkpoint
