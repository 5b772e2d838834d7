#include "layline/base/text_wrap.h"

#include <algorithm>

namespace layline::base {

std::string wrap(std::string_view text, const TextStyle& style, int indent) {
  const std::string margin(static_cast<size_t>(indent), ' ');
  std::string lines, line;
  int width = 0;
  const auto end_line = [&] {
    if (!line.empty()) lines += margin + line + "\n";
    line.clear();
  };
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (word.empty()) continue;
    const int cells = display_width(word);
    if (!line.empty() && indent + width + 1 + cells > style.width) end_line();
    width = line.empty() ? cells : width + 1 + cells;
    line += line.empty() ? "" : " ";
    line += word;
  }
  end_line();
  return lines;
}

}  // namespace layline::base
