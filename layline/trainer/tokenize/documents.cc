#include "layline/trainer/tokenize/documents.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>

#include "layline/base/error.h"

namespace layline::trainer::tokenize {
namespace {

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// Behind the character that has the byte.
int64_t character_end(std::string_view text, size_t byte) {
  constexpr size_t kLongest = 4;
  size_t end = byte + 1;
  while (end < text.size() && end < byte + kLongest && continues_character(text[end])) ++end;
  return static_cast<int64_t>(end);
}

}  // namespace

bool is_json_lines(const std::string& path) {
  return std::ranges::any_of(std::array<std::string_view, 3>{".jsonl", ".ndjson", ".json"},
                             [&](std::string_view ending) { return path.ends_with(ending); });
}

std::vector<Piece> cut(std::string_view text, size_t input, bool cuts_lines, int64_t piece_bytes) {
  std::vector<Piece> pieces;
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t begin = 0; begin < size;) {
    int64_t end = size;
    if (size - begin > piece_bytes) {
      const auto last = static_cast<size_t>(begin + piece_bytes - 1);
      const std::string_view within = cuts_lines ? text.substr(0, last + static_cast<size_t>(piece_bytes)) : text;
      const size_t line_end = within.find('\n', last);
      if (line_end != std::string_view::npos) end = static_cast<int64_t>(line_end) + 1;
      if (line_end == std::string_view::npos && within.size() < text.size()) end = character_end(text, last);
    }
    pieces.push_back({input, begin, end});
    begin = end;
  }
  return pieces;
}

struct LineReader::Parser {
  simdjson::dom::parser parser;
};

LineReader::LineReader(std::string key) : key_(std::move(key)), parser_(std::make_unique<Parser>()) {}

LineReader::~LineReader() = default;

std::string LineReader::parse(std::string_view line, std::string_view& text) {
  buffer_.assign(line);
  buffer_.resize(line.size() + simdjson::SIMDJSON_PADDING);
  simdjson::dom::element element;
  if (const auto error = parser_->parser.parse(buffer_.data(), line.size(), false).get(element)) {
    return fmt::format("is no JSON: {}", simdjson::error_message(error));
  }
  simdjson::dom::object object;
  if (element.get(object)) return "is no JSON object";
  simdjson::dom::element value;
  if (object.at_key(key_).get(value)) return fmt::format("has no \"{}\" (--json-key names where the text is)", key_);
  if (value.get(text)) return fmt::format("\"{}\" is no text", key_);
  return "";
}

void LineReader::fail(const std::string& path, int64_t number, const std::string& mistake) {
  throw base::InputError(fmt::format("{}, line {}", path, number), mistake);
}

int64_t first_invalid_utf8(std::string_view text) {
  if (simdjson::validate_utf8(text.data(), text.size())) return -1;
  // The longest valid start: halves, each cut where a character begins.
  size_t good = 0, bad = text.size();
  while (bad - good > 1) {
    size_t middle = good + (bad - good) / 2;
    while (middle > good && continues_character(text[middle])) --middle;
    if (middle == good) {
      middle = good + 1;
      while (middle < bad && continues_character(text[middle])) ++middle;
      if (middle == bad) break;
    }
    if (simdjson::validate_utf8(text.data() + good, middle - good)) {
      good = middle;
    } else {
      bad = middle;
    }
  }
  return static_cast<int64_t>(good);
}

}  // namespace layline::trainer::tokenize
