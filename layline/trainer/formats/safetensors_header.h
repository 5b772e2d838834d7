// What a safetensors file says of its tensors (https://github.com/huggingface/safetensors, "Format"):
//
//   byte 0   u64 length of the header
//        8   the header, JSON: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, …,
//            "__metadata__": {"key": "text"}}, spaces may follow
//            the tensors, row-major; offsets count from here
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace layline::trainer::formats {

enum class TensorType {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kI64,
  kU64,
  kF64
};

std::string_view name_of(TensorType type);  // "BF16", as in the header
int64_t num_bytes(TensorType type);

struct TensorEntry {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;  // {} is a scalar
  int64_t begin_bytes = 0;     // in the file
  int64_t size_bytes = 0;
};

struct SafetensorsHeader {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
};

inline constexpr int64_t kMaxSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::string_view kMetadataKey = "__metadata__";

// The header of `file`, the whole content of `path`. Tensors must fill the file from the header's end to its own,
// without holes or overlaps. Throws base::InputError: file, where in it, found, allowed.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& path);

// A tensor to be written.
struct TensorShape {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
};

// The first bytes of a file with these tensors, length and padding included, and the order in which the tensors follow:
// large elements first, so that each is aligned, then by name. Names are UTF-8, and none is "__metadata__".
struct WrittenHeader {
  std::string bytes;
  std::vector<std::string> order;
};
WrittenHeader write_safetensors_header(const std::map<std::string, TensorShape>& tensors,
                                       const std::map<std::string, std::string>& metadata);

}  // namespace layline::trainer::formats
