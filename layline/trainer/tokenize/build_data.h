// From text to a Megatron data set, PREFIX.bin and PREFIX.idx: in parallel, in constant memory, and so that a build
// that was ended goes on where it was.
//
// Until it is complete a build has files PREFIX.building.bin, .sequences and .json beside its output; the last says how
// far the others are right. PREFIX.idx appears last.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "layline/base/progress.h"
#include "layline/trainer/formats/megatron_index.h"

namespace layline::trainer::tokenize {

struct BuildOptions {
  std::vector<std::string> inputs;  // files, in order
  std::string output;               // the prefix
  std::string tokenizer = "bytes";
  std::string json_key = "text";
  std::optional<formats::TokenType> type;  // the smallest of u8, u16 and i32 that holds all ids
  bool appends_end_of_document = false;
  int64_t piece_bytes = int64_t{4} << 20;
  int64_t sync_bytes = int64_t{256} << 20;  // tokens between two notes of how far it is
};

struct BuildResult {
  bool is_complete = false;  // or was cancelled
  formats::TokenType type = formats::TokenType::kU16;
  int64_t num_documents = 0, num_empty_documents = 0;  // the empty ones are left out
  int64_t num_tokens = 0, num_bytes = 0;
  int64_t input_bytes = 0, resumed_bytes = 0;  // of text; those that an earlier build had done
};

// Throws base::InputError (missing or wrong input, output that is there, another build at work, ids that the type
// cannot hold) and base::RunError (a full disk). What was built so far stays, and the same options go on with it.
BuildResult build_data(const BuildOptions& options, base::ProgressSink* sink,
                       const std::function<bool()>& is_cancelled);

}  // namespace layline::trainer::tokenize
