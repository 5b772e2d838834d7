#include "layline/trainer/checkpoint/file_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>

#include "layline/base/error.h"
#include "layline/base/file_descriptor.h"

namespace layline::trainer::checkpoint {
namespace {

// Of one write, and what its memory and its place in the file are multiples of.
constexpr int64_t kWriteBytes = 8 << 20;
constexpr int64_t kAlignment = 4096;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT: of aligned_alloc
};

class Writer {
 public:
  Writer(const std::string& path, std::vector<FilePart> parts, const std::function<bool()>& is_cancelled)
      : path_(path), parts_(std::move(parts)), is_cancelled_(is_cancelled), file_(open_new()) {
    std::sort(parts_.begin(), parts_.end(),
              [](const FilePart& a, const FilePart& b) { return a.begin_bytes < b.begin_bytes; });
    std::erase_if(parts_, [](const FilePart& part) { return part.bytes.empty(); });
    if (!parts_.empty()) size_bytes_ = end_of(parts_.back());
  }

  int64_t write() {
    reserve();
    tbb::parallel_for(int64_t{0}, (size_bytes_ + kWriteBytes - 1) / kWriteBytes,
                      [this](int64_t i) { write_piece(i * kWriteBytes); });
    if (::ftruncate(file_.get(), size_bytes_) != 0 || ::fsync(file_.get()) != 0 || file_.close() != 0) fail();
    return size_bytes_;
  }

 private:
  static int64_t end_of(const FilePart& part) { return part.begin_bytes + static_cast<int64_t>(part.bytes.size()); }

  [[noreturn]] void fail() const {
    throw base::RunError(path_, fmt::format("cannot write: {}", std::generic_category().message(errno)));
  }

  int open_new() const {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    int file = ::open(path_.c_str(), kFlags | O_DIRECT, 0666);
    if (file < 0 && errno == EINVAL) file = ::open(path_.c_str(), kFlags, 0666);
    if (file < 0) fail();
    return file;
  }

  // A full disk is known at once, and threads need not wait for each other to make the file longer.
  void reserve() const {
    if (size_bytes_ == 0 || ::fallocate(file_.get(), 0, 0, size_bytes_) == 0) return;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINTR) fail();
  }

  void write_piece(int64_t begin) const {
    if (is_cancelled_ && is_cancelled_()) throw base::RunError(path_, "writing it was given up");
    const int64_t size = std::min(kWriteBytes, size_bytes_ - begin);
    const int64_t padded = (size + kAlignment - 1) / kAlignment * kAlignment;
    const std::unique_ptr<std::byte, Free> memory(
        static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(padded))));
    if (!memory) throw base::RunError(path_, "no memory is left to write it");
    copy_parts(begin, begin + size, memory.get());
    std::memset(memory.get() + size, 0, static_cast<size_t>(padded - size));
    write_fully({memory.get(), static_cast<size_t>(padded)}, begin);
  }

  void copy_parts(int64_t begin, int64_t end, std::byte* to) const {
    const auto is_before = [](const FilePart& part, int64_t place) { return end_of(part) <= place; };
    int64_t filled = begin;
    for (auto part = std::lower_bound(parts_.begin(), parts_.end(), begin, is_before);
         part != parts_.end() && part->begin_bytes < end; ++part) {
      const int64_t first = std::max(begin, part->begin_bytes), last = std::min(end, end_of(*part));
      std::memset(to + (filled - begin), 0, static_cast<size_t>(first - filled));
      std::memcpy(to + (first - begin), part->bytes.data() + (first - part->begin_bytes),
                  static_cast<size_t>(last - first));
      filled = last;
    }
    std::memset(to + (filled - begin), 0, static_cast<size_t>(end - filled));
  }

  void write_fully(std::span<const std::byte> bytes, int64_t offset) const {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(file_.get(), bytes.data(), bytes.size(), offset);
      if (count < 0 && errno == EINTR) continue;
      // Where a file system wants another alignment, or took a part of a block.
      if (count < 0 && errno == EINVAL && stop_being_direct()) continue;
      if (count < 0) fail();
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += count;
    }
  }

  bool stop_being_direct() const {
    const int flags = ::fcntl(file_.get(), F_GETFL);
    return flags >= 0 && (flags & O_DIRECT) != 0 && ::fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) == 0;
  }

  const std::string& path_;
  std::vector<FilePart> parts_;
  const std::function<bool()>& is_cancelled_;
  base::FileDescriptor file_;
  int64_t size_bytes_ = 0;
};

}  // namespace

int64_t write_new_file(const std::string& path, std::vector<FilePart> parts,
                       const std::function<bool()>& is_cancelled) {
  return Writer(path, std::move(parts), is_cancelled).write();
}

}  // namespace layline::trainer::checkpoint
