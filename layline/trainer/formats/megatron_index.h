// The .idx file that describes the tokens of a .bin file, as Megatron-LM writes it
// (megatron/core/datasets/indexed_dataset.py):
//
//   byte 0   "MMIDIDX\0\0"
//        9   u64 version, 1
//       17   u8 token type: 1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 6 f64, 7 f32, 8 u16
//       18   u64 number of sequences
//       26   u64 length of the document index: documents + 1
//       34   i32 length of each sequence, in tokens
//            i64 offset of each sequence in the .bin, in bytes
//            i64 document index: the first sequence of each document, then the number of sequences
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace layline::trainer::formats {

enum class TokenType { kU8, kI8, kI16, kI32, kI64, kU16 };

int64_t num_bytes(TokenType type);
// The largest id that the type can hold.
int64_t largest_value(TokenType type);

struct MegatronIndex {
  TokenType type = TokenType::kU16;
  int64_t num_sequences = 0;
  int64_t num_documents = 0;
  int64_t num_empty_documents = 0;
  int64_t num_tokens = 0;
};

// Checks all of `index`, the content of `index_path`, against the size of its .bin: sequences lie one behind the other
// from the first byte of the .bin to its last, and documents likewise over the sequences. Both may be empty.
// Throws base::InputError: file, byte offset, found, allowed.
MegatronIndex parse_megatron_index(std::span<const std::byte> index, const std::string& index_path, int64_t bin_bytes,
                                   const std::string& bin_path);

}  // namespace layline::trainer::formats
