#include <algorithm>
#include <cstdint>

#include "layline/base/text_table.h"

namespace layline::base {
namespace {

struct Character {
  uint32_t code = 0;
  size_t num_bytes = 1;
};

// The first character of a text that is not empty; a byte that is no valid UTF-8 counts as one character.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80 ? 1 : byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : byte(0) >= 0xC0 ? 2 : 1;
  if (length == 1 || length > text.size()) return {byte(0), 1};
  uint32_t code = byte(0) & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {byte(0), 1};
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  return {code, length};
}

struct Range {
  uint32_t first, last;
};

template <size_t N>
bool is_in(uint32_t code, const Range (&ranges)[N]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const Range& range) { return code >= range.first && code <= range.last; });
}

// The C library's wcwidth depends on the locale that the program happens to run in.
int width_of(uint32_t code) {
  constexpr Range kNoWidth[] = {
      {0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
  constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},  {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6},
                             {0x1F300, 0x1F64F}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  if (is_in(code, kNoWidth)) return 0;
  return is_in(code, kWide) ? 2 : 1;
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += width_of(character.code);
    text.remove_prefix(character.num_bytes);
  }
  return width;
}

std::string shorten(std::string_view text, int width, const TextStyle& style) {
  if (display_width(text) <= width) return std::string(text);
  if (width <= 0) return "";
  const std::string_view ellipsis = style.unicode ? "…" : ".";
  std::string result;
  int used = 1;
  while (!text.empty()) {
    const Character character = first_character(text);
    used += width_of(character.code);
    if (used > width) break;
    result += text.substr(0, character.num_bytes);
    text.remove_prefix(character.num_bytes);
  }
  return result.append(ellipsis);
}

}  // namespace layline::base
