// Hashes by which damage is noticed: XXH3 of 64 bits, of what is read at once. The data of a file is hashed in blocks,
// so that a rank that needs a part of it can check that part. The blocks of a tensor begin at its first byte; the last
// one may be shorter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace layline::trainer::checkpoint {

inline constexpr int64_t kBlockBytes = 16 << 10;

inline int64_t num_blocks(int64_t size_bytes) { return (size_bytes + kBlockBytes - 1) / kBlockBytes; }

uint64_t hash(std::span<const std::byte> bytes);
uint64_t hash(std::string_view text);
// 16 digits.
std::string hash_text(uint64_t value);

void append_block_hashes(std::span<const std::byte> bytes, std::vector<uint64_t>& hashes);

}  // namespace layline::trainer::checkpoint
