#include "layline/trainer/tokenize/encode_piece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "layline/base/error.h"

namespace layline::trainer::tokenize {
namespace {

using formats::TokenType;

template <typename Value>
void append_as(const std::vector<int32_t>& ids, std::string& bytes) {
  const size_t begin = bytes.size();
  bytes.resize(begin + ids.size() * sizeof(Value));
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto value = static_cast<Value>(ids[i]);
    std::memcpy(bytes.data() + begin + i * sizeof(Value), &value, sizeof(Value));
  }
}

void append(const std::vector<int32_t>& ids, TokenType type, std::string& bytes) {
  switch (type) {
    case TokenType::kU8:
    case TokenType::kI8:
      return append_as<uint8_t>(ids, bytes);
    case TokenType::kU16:
    case TokenType::kI16:
      return append_as<uint16_t>(ids, bytes);
    case TokenType::kI32:
      return append_as<int32_t>(ids, bytes);
    case TokenType::kI64:
      return append_as<int64_t>(ids, bytes);
  }
}

int64_t line_number(std::string_view text, int64_t offset) {
  return std::count(text.begin(), text.begin() + offset, '\n') + 1;
}

class Encoder {
 public:
  Encoder(const Tokenizer& tokenizer, const EncodeOptions& options) : tokenizer_(tokenizer), options_(options) {}

  void add(std::string_view text, bool begins_document, bool ends_document) {
    ids_.clear();
    tokenizer_.encode(text, ids_);
    const bool is_whole = begins_document && ends_document;
    if (is_whole && ids_.empty()) {
      ++encoded_.num_empty_documents;
      return;
    }
    if (ends_document && options_.appends_end_of_document) ids_.push_back(tokenizer_.end_of_document());
    append(ids_, options_.type, encoded_.bytes);
    const auto count = static_cast<int64_t>(ids_.size());
    encoded_.sequences.push_back({count, begins_document});
    encoded_.num_documents += begins_document ? 1 : 0;
    encoded_.num_tokens += count;
  }
  EncodedPiece take() { return std::move(encoded_); }

 private:
  const Tokenizer& tokenizer_;
  const EncodeOptions& options_;
  std::vector<int32_t> ids_;
  EncodedPiece encoded_;
};

void check_utf8(std::string_view text, const std::string& path, const Piece& piece) {
  const std::string_view part =
      text.substr(static_cast<size_t>(piece.begin_bytes), static_cast<size_t>(piece.end_bytes - piece.begin_bytes));
  const int64_t bad = first_invalid_utf8(part);
  if (bad < 0) return;
  throw base::InputError(fmt::format("{}, line {}", path, line_number(text, piece.begin_bytes + bad)),
                         fmt::format("byte {} is no UTF-8, which the tokenizer wants", piece.begin_bytes + bad));
}

void add_lines(std::string_view text, const std::string& path, const Piece& piece, const std::string& json_key,
               Encoder& encoder) {
  LineReader reader(json_key);
  for (int64_t begin = piece.begin_bytes; begin < piece.end_bytes;) {
    const size_t found = text.find('\n', static_cast<size_t>(begin));
    const int64_t end = found == std::string_view::npos ? piece.end_bytes : static_cast<int64_t>(found);
    std::string_view line = text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      const auto number = [&text, begin] { return line_number(text, begin); };
      const std::string_view document = reader.read(line, path, number);
      if (static_cast<int64_t>(document.size()) >= kMostTokensOfASequence) {
        throw base::InputError(fmt::format("{}, line {}", path, number()), "is a document of 2 GiB or more");
      }
      encoder.add(document, true, true);
    }
    begin = end + 1;
  }
}

}  // namespace

EncodedPiece encode_piece(std::string_view text, const std::string& path, const Piece& piece,
                          const Tokenizer& tokenizer, const EncodeOptions& options) {
  Encoder encoder(tokenizer, options);
  if (is_json_lines(path)) {
    add_lines(text, path, piece, options.json_key, encoder);
    return encoder.take();
  }
  if (tokenizer.wants_utf8()) check_utf8(text, path, piece);
  encoder.add(
      text.substr(static_cast<size_t>(piece.begin_bytes), static_cast<size_t>(piece.end_bytes - piece.begin_bytes)),
      piece.begin_bytes == 0, piece.end_bytes == static_cast<int64_t>(text.size()));
  return encoder.take();
}

}  // namespace layline::trainer::tokenize
