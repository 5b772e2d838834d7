#include "layline/trainer/formats/megatron_tokens.h"

#include <cassert>

#include "layline/trainer/formats/load_value.h"

namespace layline::trainer::formats {
namespace {

MegatronIndex read_index(const std::string& path, const MappedFile& bin) {
  const MappedFile file(path);
  return parse_megatron_index(file.bytes(), path, static_cast<int64_t>(bin.bytes().size()), bin.path());
}

template <typename Token>
void widen(const std::byte* tokens, std::span<int64_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = +load_value<Token>(tokens, static_cast<int64_t>(i));
  }
}

}  // namespace

MegatronTokens::MegatronTokens(const std::string& prefix)
    : bin_(prefix + ".bin"), index_(read_index(prefix + ".idx", bin_)) {}

void MegatronTokens::read(int64_t offset, std::span<int64_t> out) const {
  assert(offset >= 0 && offset + static_cast<int64_t>(out.size()) <= num_tokens());
  const std::byte* tokens = bin_.bytes().data() + offset * num_bytes(index_.type);
  switch (index_.type) {
    case TokenType::kU8:
      return widen<uint8_t>(tokens, out);
    case TokenType::kI8:
      return widen<int8_t>(tokens, out);
    case TokenType::kI16:
      return widen<int16_t>(tokens, out);
    case TokenType::kI32:
      return widen<int32_t>(tokens, out);
    case TokenType::kI64:
      return widen<int64_t>(tokens, out);
    case TokenType::kU16:
      return widen<uint16_t>(tokens, out);
  }
}

}  // namespace layline::trainer::formats
