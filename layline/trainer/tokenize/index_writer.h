// A Megatron-LM index (formats/megatron_index.h) from a file of its sequences, in constant memory.
#pragma once

#include <cstdint>
#include <string>

#include "layline/trainer/formats/megatron_index.h"

namespace layline::trainer::tokenize {

// A sequence in the file, in 8 bytes.
struct Sequence {
  int64_t num_tokens = 0;
  bool begins_document = false;

  int64_t packed() const { return num_tokens * 2 + (begins_document ? 1 : 0); }
  static Sequence unpacked(int64_t value) { return {value / 2, value % 2 != 0}; }
};

inline constexpr int64_t kMostTokensOfASequence = 0x7fffffff;

// Writes `path`, and has it on disk when it returns. sequences_path: packed sequences, the first of which begins a
// document. Throws base::RunError when writing fails.
void write_megatron_index(const std::string& path, formats::TokenType type, const std::string& sequences_path,
                          int64_t num_documents);

}  // namespace layline::trainer::tokenize
