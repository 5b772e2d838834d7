// The frameworks' readers. Private to this folder: import_layout() calls them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "layline/export/import.h"

namespace layline::exporting {

inline constexpr int64_t kMaxCount = int64_t{1} << 40;  // of what files say

// What a file says; numbers are 0 where it does not.
struct Draft {
  std::optional<spec::Model> model;  // without a name
  bool knows_vocab = true;
  int64_t num_gpus = 0;
  int64_t dp = 0;
  int64_t global_batch = 0;
  int64_t sequence_length = 0;
  spec::Precision precision = spec::Precision::kBf16;
  layout::Layout layout;              // its dp and split are not looked at
  std::vector<int64_t> stage_layers;  // empty: as the engine splits
  std::vector<std::string> ignored, notes;
};

Draft read_megatron(std::string_view text, const ImportOptions& options);
Draft read_nemo(std::string_view text, const ImportOptions& options);
Draft read_torchtitan(std::string_view text, const ImportOptions& options);
Draft read_nanotron(std::string_view text, const ImportOptions& options);
Draft read_deepspeed(std::string_view text, const ImportOptions& options);
Draft read_layline(std::string_view text, const ImportOptions& options);

}  // namespace layline::exporting
