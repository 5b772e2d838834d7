#include "layline/trainer/data/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <functional>
#include <numeric>

#include "layline/base/error.h"
#include "layline/trainer/data/tensor_type.h"
#include "layline/trainer/formats/safetensors_files.h"

namespace layline::trainer::data {

using formats::PlacedTensor;
using formats::TensorEntry;

namespace {

int64_t product(const std::vector<int64_t>& shape, size_t first, size_t last) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(first),
                         shape.begin() + static_cast<std::ptrdiff_t>(last), int64_t{1}, std::multiplies<>());
}

}  // namespace

struct SafetensorsFolder::State {
  formats::SafetensorsFiles all;

  const PlacedTensor& find(const std::string& name) const {
    const auto found = all.tensors.find(name);
    if (found != all.tensors.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, tensor] : all.tensors) names.push_back(known);
    throw base::InputError(all.path, base::unknown_name_message("tensor", name, names));
  }
};

SafetensorsFolder::SafetensorsFolder(const std::string& path)
    : state_(std::make_unique<State>(formats::open_safetensors(path))) {}
SafetensorsFolder::~SafetensorsFolder() = default;

const std::string& SafetensorsFolder::path() const { return state_->all.path; }

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_->all.tensors) names.push_back(name);
  return names;
}

bool SafetensorsFolder::has(const std::string& name) const { return state_->all.tensors.count(name) != 0; }

TensorInfo SafetensorsFolder::info(const std::string& name) const {
  const TensorEntry& entry = state_->find(name).entry;
  return {.dtype = to_scalar_type(entry.type), .shape = entry.shape};
}

at::Tensor SafetensorsFolder::load(const std::string& name) const {
  const PlacedTensor& found = state_->find(name);
  at::Tensor tensor = at::empty(found.entry.shape, to_scalar_type(found.entry.type));
  if (found.entry.size_bytes > 0) {
    std::memcpy(tensor.mutable_data_ptr(), found.file->bytes().data() + found.entry.begin_bytes,
                static_cast<size_t>(found.entry.size_bytes));
  }
  return tensor;
}

at::Tensor SafetensorsFolder::slice(const std::string& name, int64_t dim, int64_t offset, int64_t length) const {
  const PlacedTensor& found = state_->find(name);
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
