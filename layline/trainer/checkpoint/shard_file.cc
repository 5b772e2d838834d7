#include "layline/trainer/checkpoint/shard_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <system_error>
#include <unordered_map>

#include "layline/base/error.h"
#include "layline/base/file_descriptor.h"
#include "layline/trainer/checkpoint/hashes.h"

namespace layline::trainer::checkpoint {
namespace {

// Of one write.
constexpr size_t kWriteBytes = 8 << 20;

std::string reason() { return std::generic_category().message(errno); }

class ShardWriter {
 public:
  ShardWriter(std::string path, const std::function<bool()>& is_cancelled)
      : path_(std::move(path)),
        is_cancelled_(is_cancelled),
        file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (file_.get() < 0) fail();
  }

  void write(std::span<const std::byte> bytes, int64_t offset) {
    while (!bytes.empty()) {
      if (is_cancelled_ && is_cancelled_()) throw base::RunError(path_, "writing it was given up");
      const ssize_t count = ::pwrite(file_.get(), bytes.data(), std::min(bytes.size(), kWriteBytes), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += count;
    }
  }

  void finish() {
    if (::fsync(file_.get()) != 0 || file_.close() != 0) fail();
  }

 private:
  [[noreturn]] void fail() const { throw base::RunError(path_, fmt::format("cannot write: {}", reason())); }

  std::string path_;
  const std::function<bool()>& is_cancelled_;
  base::FileDescriptor file_;
};

using Contents = std::unordered_map<std::string, std::span<const std::byte>>;

int64_t count_blocks(const Contents& contents) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : contents) sum += num_blocks(static_cast<int64_t>(bytes.size()));
  return sum;
}

std::vector<int64_t> stored_shape(const ShardSlice& slice) {
  if (slice.parameter.shape.size() <= 1) return {slice.box.num_rows};
  return {slice.box.num_rows, slice.box.num_columns};
}

// The file's tensors by name, and what its header says of them.
struct Tensors {
  Contents contents;
  std::map<std::string, formats::TensorShape> shapes;
};

Tensors tensors_of(const std::vector<ShardSlice>& slices, formats::TensorType type) {
  Tensors tensors;
  for (const ShardSlice& slice : slices) {
    for (size_t kind = 0; kind < slice.contents.size(); ++kind) {
      if (slice.contents[kind].empty()) continue;
      assert(static_cast<int64_t>(slice.contents[kind].size()) == slice.box.size() * formats::num_bytes(type));
      const std::string name = tensor_name(static_cast<Kind>(kind), slice.parameter.name, slice.box);
      tensors.contents.emplace(name, slice.contents[kind]);
      tensors.shapes[name] = {.type = type, .shape = stored_shape(slice)};
    }
  }
  tensors.shapes[std::string(kHashesName)] = {.type = formats::TensorType::kU64,
                                              .shape = {count_blocks(tensors.contents)}};
  return tensors;
}

using Offsets = std::unordered_map<std::string, int64_t>;

Offsets offsets_of(const formats::WrittenHeader& header, const Tensors& tensors) {
  Offsets offsets;
  auto end = static_cast<int64_t>(header.bytes.size());
  for (const std::string& name : header.order) {
    offsets[name] = end;
    const auto found = tensors.contents.find(name);
    end += found != tensors.contents.end() ? static_cast<int64_t>(found->second.size())
                                           : count_blocks(tensors.contents) * int64_t{sizeof(uint64_t)};
  }
  return offsets;
}

std::vector<SavedSlice> saved_slices(const std::vector<ShardSlice>& slices, const Offsets& offsets) {
  std::vector<SavedSlice> saved;
  for (const ShardSlice& slice : slices) {
    SavedSlice& entry = saved.emplace_back();
    entry.parameter = slice.parameter_index;
    entry.box = slice.box;
    for (size_t kind = 0; kind < slice.contents.size(); ++kind) {
      if (slice.contents[kind].empty()) continue;
      entry.begin_bytes[kind] = offsets.at(tensor_name(static_cast<Kind>(kind), slice.parameter.name, slice.box));
    }
  }
  return saved;
}

SavedFile write(const std::string& path, const formats::WrittenHeader& header, const Tensors& tensors,
                const Offsets& offsets, const std::function<bool()>& is_cancelled) {
  ShardWriter writer(path, is_cancelled);
  const auto header_bytes = std::as_bytes(std::span(header.bytes));
  writer.write(header_bytes, 0);
  SavedFile saved;
  saved.header_bytes = saved.size_bytes = static_cast<int64_t>(header_bytes.size());
  saved.header_hash = hash(header_bytes);
  std::vector<uint64_t> hashes;
  for (const std::string& name : header.order) {
    if (name == kHashesName) continue;
    const std::span<const std::byte> bytes = tensors.contents.at(name);
    append_block_hashes(bytes, hashes);
    writer.write(bytes, offsets.at(name));
    saved.size_bytes += static_cast<int64_t>(bytes.size());
  }
  const auto hash_bytes = std::as_bytes(std::span(hashes));
  saved.hashes_begin_bytes = offsets.at(std::string(kHashesName));
  saved.num_hashes = static_cast<int64_t>(hashes.size());
  saved.hashes_hash = hash(hash_bytes);
  saved.size_bytes += static_cast<int64_t>(hash_bytes.size());
  writer.write(hash_bytes, saved.hashes_begin_bytes);
  writer.finish();
  return saved;
}

}  // namespace

std::string tensor_name(Kind kind, const std::string& parameter, const Box& box) {
  return fmt::format("{}/{}/{},{}", kKindNames[static_cast<size_t>(kind)], parameter, box.first_row, box.first_column);
}

SavedFile write_shard(const std::string& folder, const std::string& name, formats::TensorType type,
                      const std::vector<ShardSlice>& slices, const std::map<std::string, std::string>& metadata,
                      const std::function<bool()>& is_cancelled) {
  const Tensors tensors = tensors_of(slices, type);
  const formats::WrittenHeader header = formats::write_safetensors_header(tensors.shapes, metadata);
  const Offsets offsets = offsets_of(header, tensors);
  const std::string path = folder + "/" + name;
  try {
    SavedFile saved = write(path, header, tensors, offsets, is_cancelled);
    saved.name = name;
    saved.slices = saved_slices(slices, offsets);
    return saved;
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace layline::trainer::checkpoint
