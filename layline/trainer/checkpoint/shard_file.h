// One file of a checkpoint, as a rank writes it: a safetensors file with a tensor for each rectangle and kind, named
// `weight/model.norm.weight/0,0` after the kind, the weight, and the row and column at which it begins; and a tensor
// `block_hashes` with the hashes (hashes.h) of all others, one behind the other in the order of the file.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "layline/trainer/checkpoint/manifest.h"

namespace layline::trainer::checkpoint {

inline constexpr std::string_view kHashesName = "block_hashes";

// A rectangle with its contents, row-major and dense; kinds that the checkpoint has not are empty.
struct ShardSlice {
  SavedParameter parameter;
  int64_t parameter_index = 0;
  Box box;
  std::array<std::span<const std::byte>, kNumKinds> contents;
};

std::string tensor_name(Kind kind, const std::string& parameter, const Box& box);

// Its entry in the manifest, and the file on disk. Throws base::RunError when that fails, or when `is_cancelled` says
// so between two writes; then there is no file.
SavedFile write_shard(const std::string& folder, const std::string& name, formats::TensorType type,
                      const std::vector<ShardSlice>& slices, const std::map<std::string, std::string>& metadata,
                      const std::function<bool()>& is_cancelled = {});

}  // namespace layline::trainer::checkpoint
