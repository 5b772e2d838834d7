// Documents in files of text and of JSON Lines, in pieces that are tokenized apart.
//
// A file of text is one document. It is cut behind ends of lines; a line that is longer than a piece is cut between two
// characters. In a file of JSON Lines (.jsonl, .ndjson, .json) each line that is not blank is an object with the text
// of a document, and a piece is whole lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace layline::trainer::tokenize {

inline constexpr int64_t kPieceBytes = 4 << 20;

bool is_json_lines(const std::string& path);

struct Piece {
  size_t input = 0;  // which file
  int64_t begin_bytes = 0, end_bytes = 0;
};

// The pieces of a file, in order. None of them is empty. cuts_lines: that are too long.
std::vector<Piece> cut(std::string_view text, size_t input, bool cuts_lines, int64_t piece_bytes = kPieceBytes);

// The text of the document in a line of JSON Lines. Throws base::InputError naming `where` for what is no JSON object,
// or has no string at `key`.
class LineReader {
 public:
  explicit LineReader(std::string key);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Until the next call. number: of the line, counted from 1, called only when something is wrong.
  template <typename Number>
  std::string_view read(std::string_view line, const std::string& path, const Number& number) {
    std::string_view text;
    const std::string mistake = parse(line, text);
    if (!mistake.empty()) fail(path, number(), mistake);
    return text;
  }

 private:
  std::string parse(std::string_view line, std::string_view& text);
  [[noreturn]] static void fail(const std::string& path, int64_t number, const std::string& mistake);

  struct Parser;
  std::string key_, buffer_;
  std::unique_ptr<Parser> parser_;
};

// Where `text` is no UTF-8; -1: it is.
int64_t first_invalid_utf8(std::string_view text);

}  // namespace layline::trainer::tokenize
