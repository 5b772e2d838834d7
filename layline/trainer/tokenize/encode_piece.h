// A piece of a file as tokens, as they are in a .bin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layline/trainer/formats/megatron_index.h"
#include "layline/trainer/tokenize/documents.h"
#include "layline/trainer/tokenize/index_writer.h"
#include "layline/trainer/tokenize/tokenizer.h"

namespace layline::trainer::tokenize {

struct EncodeOptions {
  std::string json_key = "text";
  formats::TokenType type = formats::TokenType::kU16;  // holds all ids of the tokenizer
  bool appends_end_of_document = false;
};

struct EncodedPiece {
  std::string bytes;
  std::vector<Sequence> sequences;
  int64_t num_documents = 0, num_empty_documents = 0;  // that begin in it; the empty ones are left out
  int64_t num_tokens = 0;
};

// text, path: of the whole file. Throws base::InputError naming the file and the line.
EncodedPiece encode_piece(std::string_view text, const std::string& path, const Piece& piece,
                          const Tokenizer& tokenizer, const EncodeOptions& options);

}  // namespace layline::trainer::tokenize
