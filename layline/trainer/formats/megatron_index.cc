#include "layline/trainer/formats/megatron_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <string_view>

#include "layline/base/error.h"
#include "layline/trainer/formats/load_value.h"

namespace layline::trainer::formats {

using base::InputError;

namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr std::string_view kOldMagic("TNTIDX\0\0", 8);
constexpr int64_t kVersionOffset = 9, kTypeOffset = 17, kSequencesOffset = 18, kDocumentsOffset = 26, kHeaderBytes = 34;
constexpr int64_t kLengthBytes = 4, kPointerBytes = 8, kDocumentBytes = 8;
constexpr const char* kAllowedTypes = "1 (u8), 2 (i8), 3 (i16), 4 (i32), 5 (i64) or 8 (u16)";

// Where the arrays begin.
struct Arrays {
  int64_t num_sequences, document_index_length;

  int64_t lengths() const { return kHeaderBytes; }
  int64_t pointers() const { return lengths() + num_sequences * kLengthBytes; }
  int64_t documents() const { return pointers() + num_sequences * kPointerBytes; }
  int64_t end() const { return documents() + document_index_length * kDocumentBytes; }
};

[[noreturn]] void fail(const std::string& path, int64_t offset, const std::string& what) {
  throw InputError(path, fmt::format("byte {}: {}", offset, what));
}

void check_magic(std::span<const std::byte> index, const std::string& path) {
  const std::string_view start(reinterpret_cast<const char*>(index.data()), std::min(index.size(), kMagic.size()));
  if (start.substr(0, kOldMagic.size()) == kOldMagic) {
    throw InputError(path,
                     "is an index of the old fairseq format (TNTIDX); Megatron-LM's preprocess_data.py writes "
                     "the one that is read here (MMIDIDX)");
  }
  if (start != kMagic.substr(0, start.size())) {
    fail(path, 0, "is no Megatron index: it does not begin with MMIDIDX and two zero bytes");
  }
  if (index.size() < static_cast<size_t>(kHeaderBytes)) {
    throw InputError(path,
                     fmt::format("has {} bytes; the header of a Megatron index takes {}", index.size(), kHeaderBytes));
  }
}

TokenType parse_type(uint8_t code, const std::string& path) {
  switch (code) {
    case 1:
      return TokenType::kU8;
    case 2:
      return TokenType::kI8;
    case 3:
      return TokenType::kI16;
    case 4:
      return TokenType::kI32;
    case 5:
      return TokenType::kI64;
    case 8:
      return TokenType::kU16;
    case 6:
      fail(path, kTypeOffset, fmt::format("type 6 (f64) holds no token ids; want {}", kAllowedTypes));
    case 7:
      fail(path, kTypeOffset, fmt::format("type 7 (f32) holds no token ids; want {}", kAllowedTypes));
    default:
      fail(path, kTypeOffset, fmt::format("unknown token type {}; want {}", code, kAllowedTypes));
  }
}

// Counts that the file is long enough for, exactly.
Arrays parse_counts(std::span<const std::byte> index, const std::string& path) {
  const auto num_sequences = load_value<uint64_t>(index.data() + kSequencesOffset);
  const auto num_documents = load_value<uint64_t>(index.data() + kDocumentsOffset);
  if (num_documents == 0) fail(path, kDocumentsOffset, "the document index has no entry; want documents + 1");
  if (num_sequences > index.size() / static_cast<size_t>(kLengthBytes + kPointerBytes)) {
    fail(path, kSequencesOffset,
         fmt::format("{} sequences do not fit into the {} bytes of the file: it was cut short, "
                     "or this is no count",
                     num_sequences, index.size()));
  }
  if (num_documents > index.size() / static_cast<size_t>(kDocumentBytes)) {
    fail(path, kDocumentsOffset,
         fmt::format("a document index of {} entries does not fit into the {} bytes of the "
                     "file: it was cut short, or this is no count",
                     num_documents, index.size()));
  }
  const Arrays arrays{static_cast<int64_t>(num_sequences), static_cast<int64_t>(num_documents)};
  if (arrays.end() != static_cast<int64_t>(index.size())) {
    throw InputError(path, fmt::format("has {} bytes; {} sequences and a document index of {} entries take {}",
                                       index.size(), num_sequences, num_documents, arrays.end()));
  }
  return arrays;
}

// The number of tokens, all sequences together.
int64_t check_sequences(std::span<const std::byte> index, const std::string& path, const Arrays& arrays,
                        int64_t token_bytes) {
  const std::byte* lengths = index.data() + arrays.lengths();
  const std::byte* pointers = index.data() + arrays.pointers();
  int64_t num_tokens = 0;
  for (int64_t i = 0; i < arrays.num_sequences; ++i) {
    const auto length = load_value<int32_t>(lengths, i);
    const auto pointer = load_value<int64_t>(pointers, i);
    if (length < 0) {
      fail(path, arrays.lengths() + i * kLengthBytes, fmt::format("sequence {} has a length of {}", i, length));
    }
    if (pointer != num_tokens * token_bytes) {
      fail(path, arrays.pointers() + i * kPointerBytes,
           fmt::format("sequence {} begins at byte {} of the .bin; want {}, where the one before it ends", i, pointer,
                       num_tokens * token_bytes));
    }
    num_tokens += length;
  }
  return num_tokens;
}

// The number of documents without a sequence. Those whose sequences have no tokens are not counted.
int64_t check_documents(std::span<const std::byte> index, const std::string& path, const Arrays& arrays) {
  const std::byte* documents = index.data() + arrays.documents();
  int64_t previous = 0, num_empty = 0;
  for (int64_t i = 0; i < arrays.document_index_length; ++i) {
    const auto first = load_value<int64_t>(documents, i);
    const bool is_last = i + 1 == arrays.document_index_length;
    const int64_t lower = is_last ? arrays.num_sequences : previous;
    const int64_t upper = i == 0 ? 0 : arrays.num_sequences;
    if (first < lower || first > upper) {
      const std::string allowed =
          lower >= upper ? fmt::format("{}", is_last ? lower : upper) : fmt::format("{} to {}", lower, upper);
      fail(path, arrays.documents() + i * kDocumentBytes,
           fmt::format("entry {} of the document index is {}; want {}", i, first, allowed));
    }
    if (i > 0 && first == previous) ++num_empty;
    previous = first;
  }
  return num_empty;
}

}  // namespace

int64_t num_bytes(TokenType type) {
  switch (type) {
    case TokenType::kU8:
    case TokenType::kI8:
      return 1;
    case TokenType::kI16:
    case TokenType::kU16:
      return 2;
    case TokenType::kI32:
      return 4;
    case TokenType::kI64:
      return 8;
  }
  assert(false);
  return 0;
}

int64_t largest_value(TokenType type) {
  switch (type) {
    case TokenType::kU8:
      return std::numeric_limits<uint8_t>::max();
    case TokenType::kI8:
      return std::numeric_limits<int8_t>::max();
    case TokenType::kI16:
      return std::numeric_limits<int16_t>::max();
    case TokenType::kI32:
      return std::numeric_limits<int32_t>::max();
    case TokenType::kI64:
      return std::numeric_limits<int64_t>::max();
    case TokenType::kU16:
      return std::numeric_limits<uint16_t>::max();
  }
  assert(false);
  return 0;
}

MegatronIndex parse_megatron_index(std::span<const std::byte> index, const std::string& index_path, int64_t bin_bytes,
                                   const std::string& bin_path) {
  check_magic(index, index_path);
  const auto version = load_value<uint64_t>(index.data() + kVersionOffset);
  if (version != 1) fail(index_path, kVersionOffset, fmt::format("version {}; want 1", version));
  const TokenType type = parse_type(load_value<uint8_t>(index.data() + kTypeOffset), index_path);
  const Arrays arrays = parse_counts(index, index_path);

  const int64_t num_tokens = check_sequences(index, index_path, arrays, num_bytes(type));
  const int64_t wanted_bytes = num_tokens * num_bytes(type);
  if (bin_bytes != wanted_bytes) {
    throw InputError(bin_path, fmt::format("has {} bytes; {} describes {} tokens of {} bytes, which take {}{}",
                                           bin_bytes, index_path, num_tokens, num_bytes(type), wanted_bytes,
                                           bin_bytes < wanted_bytes ? ": the file was cut short" : ""));
  }
  MegatronIndex result{.type = type, .num_sequences = arrays.num_sequences, .num_tokens = num_tokens};
  result.num_empty_documents = check_documents(index, index_path, arrays);
  result.num_documents = arrays.document_index_length - 1;
  return result;
}

}  // namespace layline::trainer::formats
