#include "layline/trainer/formats/text_tokens.h"

#include <algorithm>
#include <cassert>

namespace layline::trainer::formats {

void TextTokens::read(int64_t offset, std::span<int64_t> out) const {
  assert(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= num_tokens());
  const auto bytes = file_.bytes().subspan(static_cast<size_t>(offset), out.size());
  std::transform(bytes.begin(), bytes.end(), out.begin(), [](std::byte byte) { return static_cast<int64_t>(byte); });
}

}  // namespace layline::trainer::formats
