#include "layline/trainer/data/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>

#include "layline/base/error.h"
#include "layline/base/file.h"
#include "layline/trainer/data/tensor_type.h"
#include "layline/trainer/formats/mapped_file.h"
#include "layline/trainer/formats/safetensors_header.h"
#include "layline/trainer/formats/safetensors_index.h"

namespace layline::trainer::data {

namespace fs = std::filesystem;
using base::InputError;
using formats::MappedFile;
using formats::TensorEntry;

namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kPickledFile = "pytorch_model.bin";

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

int64_t product(const std::vector<int64_t>& shape, size_t first, size_t last) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first),
                         shape.begin() + static_cast<std::ptrdiff_t>(last), int64_t{1}, std::multiplies<>());
}

}  // namespace

struct SafetensorsFolder::State {
  struct Tensor {
    TensorEntry entry;
    const MappedFile* file = nullptr;
  };

  std::string path;
  std::vector<std::unique_ptr<MappedFile>> files;
  std::map<std::string, Tensor> tensors;

  explicit State(std::string path_given) : path(std::move(path_given)) { open(); }

  void open() {
    std::error_code error;
    if (!fs::is_directory(path, error)) return open_single(path);
    if (exists(in_folder(kSingleFile))) return open_single(in_folder(kSingleFile));
    if (exists(in_folder(kIndexFile))) return open_shards(in_folder(kIndexFile));
    const bool is_pickled = exists(in_folder(kPickledFile));
    throw InputError(path, fmt::format("found neither {} nor {}{}", kSingleFile, kIndexFile,
                                       is_pickled ? fmt::format(" ({} is not read)", kPickledFile) : ""));
  }

  std::string in_folder(const std::string& name) const { return (fs::path(path) / name).string(); }

  std::map<std::string, TensorEntry> open_file(const std::string& file_path) {
    files.push_back(std::make_unique<MappedFile>(file_path));
    return formats::parse_safetensors_header(files.back()->bytes(), file_path).tensors;
  }

  void open_single(const std::string& file_path) {
    for (auto& [name, entry] : open_file(file_path)) tensors[name] = {std::move(entry), files.back().get()};
  }

  void open_shards(const std::string& index_path) {
    std::map<std::string, std::vector<std::string>> names_by_shard;
    for (const auto& [name, shard] : formats::parse_safetensors_index(base::read_file(index_path), index_path)) {
      names_by_shard[shard].push_back(name);
    }
    for (const auto& [shard, names] : names_by_shard) {
      if (!exists(in_folder(shard))) {
        throw InputError(index_path,
                         fmt::format("tensor \"{}\" is said to be in {}, which is missing", names[0], shard));
      }
      std::map<std::string, TensorEntry> found = open_file(in_folder(shard));
      for (const std::string& name : names) {
        const auto entry = found.find(name);
        if (entry == found.end()) {
          throw InputError(index_path, fmt::format("tensor \"{}\" is said to be in {}, which lacks it", name, shard));
        }
        tensors[name] = {std::move(entry->second), files.back().get()};
      }
    }
  }

  const Tensor& find(const std::string& name) const {
    const auto found = tensors.find(name);
    if (found != tensors.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, tensor] : tensors) names.push_back(known);
    throw InputError(path, base::unknown_name_message("tensor", name, names));
  }
};

SafetensorsFolder::SafetensorsFolder(const std::string& path) : state_(std::make_unique<State>(path)) {}
SafetensorsFolder::~SafetensorsFolder() = default;

const std::string& SafetensorsFolder::path() const { return state_->path; }

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_->tensors) names.push_back(name);
  return names;
}

bool SafetensorsFolder::has(const std::string& name) const { return state_->tensors.count(name) != 0; }

TensorInfo SafetensorsFolder::info(const std::string& name) const {
  const TensorEntry& entry = state_->find(name).entry;
  return {.dtype = to_scalar_type(entry.type), .shape = entry.shape};
}

at::Tensor SafetensorsFolder::load(const std::string& name) const {
  const State::Tensor& found = state_->find(name);
  at::Tensor tensor = at::empty(found.entry.shape, to_scalar_type(found.entry.type));
  if (found.entry.size_bytes > 0) {
    std::memcpy(tensor.mutable_data_ptr(), found.file->bytes().data() + found.entry.begin_bytes,
                static_cast<size_t>(found.entry.size_bytes));
  }
  return tensor;
}

at::Tensor SafetensorsFolder::slice(const std::string& name, int64_t dim, int64_t offset, int64_t length) const {
  const State::Tensor& found = state_->find(name);
  std::vector<int64_t> shape = found.entry.shape;
  const auto d = static_cast<size_t>(dim);
  assert(dim >= 0 && d < shape.size());
  assert(offset >= 0 && length >= 0 && offset + length <= shape[d]);
  const int64_t num_blocks = product(shape, 0, d);
  const int64_t row_bytes = product(shape, d + 1, shape.size()) * formats::num_bytes(found.entry.type);
  const int64_t stride_bytes = shape[d] * row_bytes, block_bytes = length * row_bytes;
  shape[d] = length;
  at::Tensor tensor = at::empty(shape, to_scalar_type(found.entry.type));
  if (tensor.numel() == 0) return tensor;

  const std::byte* source = found.file->bytes().data() + found.entry.begin_bytes + offset * row_bytes;
  auto* target = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for (int64_t block = 0; block < num_blocks; ++block) {
    std::memcpy(target + block * block_bytes, source + block * stride_bytes, static_cast<size_t>(block_bytes));
  }
  return tensor;
}

}  // namespace layline::trainer::data
