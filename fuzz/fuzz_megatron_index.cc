// Megatron indexes: any bytes are an index that describes its .bin to the byte, or an InputError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "layline/base/error.h"
#include "layline/trainer/formats/megatron_index.h"

namespace {

namespace formats = layline::trainer::formats;

void require(bool holds) {
  if (!holds) std::abort();
}

// The input is the size of the .bin, two bytes, then the index.
void check_index(std::span<const std::byte> input) {
  uint16_t bin_bytes = 0;
  std::memcpy(&bin_bytes, input.data(), sizeof(bin_bytes));
  const auto index = input.subspan(sizeof(bin_bytes));
  const formats::MegatronIndex parsed = formats::parse_megatron_index(index, "fuzz.idx", bin_bytes, "fuzz.bin");
  require(parsed.num_tokens >= 0 && parsed.num_tokens * formats::num_bytes(parsed.type) == bin_bytes);
  require(34 + 12 * parsed.num_sequences + 8 * (parsed.num_documents + 1) == static_cast<int64_t>(index.size()));
  require(parsed.num_empty_documents >= 0 && parsed.num_empty_documents <= parsed.num_documents);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  try {
    check_index(std::as_bytes(std::span(data, size)));
  } catch (const layline::base::InputError&) {
  }
  return 0;
}
