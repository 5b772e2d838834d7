#include "layline/trainer/checkpoint/shard_file.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>
#include <unistd.h>

#include <cassert>
#include <unordered_map>

#include "layline/trainer/checkpoint/file_writer.h"
#include "layline/trainer/checkpoint/hashes.h"

namespace layline::trainer::checkpoint {
namespace {

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

// By tensor, in the order of the file, and one behind the other.
std::vector<uint64_t> block_hashes(const formats::WrittenHeader& header, const Tensors& tensors) {
  std::vector<std::vector<uint64_t>> of_tensors(header.order.size());
  tbb::parallel_for(size_t{0}, header.order.size(), [&](size_t i) {
    const auto found = tensors.contents.find(header.order[i]);
    if (found != tensors.contents.end()) append_block_hashes(found->second, of_tensors[i]);
  });
  std::vector<uint64_t> hashes;
  for (const std::vector<uint64_t>& some : of_tensors) hashes.insert(hashes.end(), some.begin(), some.end());
  return hashes;
}

SavedFile write(const std::string& path, const formats::WrittenHeader& header, const Tensors& tensors,
                const Offsets& offsets, const std::function<bool()>& is_cancelled) {
  const auto header_bytes = std::as_bytes(std::span(header.bytes));
  const std::vector<uint64_t> hashes = block_hashes(header, tensors);
  const auto hash_bytes = std::as_bytes(std::span(hashes));
  SavedFile saved;
  saved.header_bytes = static_cast<int64_t>(header_bytes.size());
  saved.header_hash = hash(header_bytes);
  saved.hashes_begin_bytes = offsets.at(std::string(kHashesName));
  saved.num_hashes = static_cast<int64_t>(hashes.size());
  saved.hashes_hash = hash(hash_bytes);
  std::vector<FilePart> parts = {{0, header_bytes}, {saved.hashes_begin_bytes, hash_bytes}};
  for (const auto& [name, bytes] : tensors.contents) parts.push_back({offsets.at(name), bytes});
  saved.size_bytes = write_new_file(path, std::move(parts), is_cancelled);
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
