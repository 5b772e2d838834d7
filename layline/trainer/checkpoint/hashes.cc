#include "layline/trainer/checkpoint/hashes.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

namespace layline::trainer::checkpoint {

uint64_t hash(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

uint64_t hash(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string hash_text(uint64_t value) { return fmt::format("{:016x}", value); }

void append_block_hashes(std::span<const std::byte> bytes, std::vector<uint64_t>& hashes) {
  while (!bytes.empty()) {
    const size_t length = std::min<size_t>(bytes.size(), kBlockBytes);
    hashes.push_back(hash(bytes.first(length)));
    bytes = bytes.subspan(length);
  }
}

}  // namespace layline::trainer::checkpoint
