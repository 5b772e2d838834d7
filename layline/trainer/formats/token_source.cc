#include "layline/trainer/formats/token_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "layline/base/error.h"

namespace layline::trainer::formats {
namespace {

constexpr int64_t kChunkTokens = int64_t{1} << 16;
constexpr int64_t kTokensCheckedAtStart = int64_t{1} << 24;

// Calls visit(offset, tokens) for the first `num_tokens` tokens of the stream.
template <typename Visit>
void for_each_chunk(const TokenSource& source, int64_t num_tokens, Visit visit) {
  std::vector<int64_t> chunk;
  for (int64_t offset = 0; offset < num_tokens; offset += kChunkTokens) {
    chunk.resize(static_cast<size_t>(std::min(kChunkTokens, num_tokens - offset)));
    source.read(offset, chunk);
    visit(offset, chunk);
  }
}

}  // namespace

int64_t TokenSource::largest_token() const {
  std::call_once(scanned_, [this] {
    int64_t largest = -1;
    for_each_chunk(*this, num_tokens(), [&largest](int64_t, const std::vector<int64_t>& tokens) {
      for (const int64_t token : tokens) largest = std::max(largest, token);
    });
    largest_token_ = largest;
  });
  return largest_token_;
}

int64_t count_samples(const TokenSource& source, int64_t sequence_length) {
  const int64_t num_tokens = source.num_tokens();
  const int64_t num_samples = (num_tokens - 1) / sequence_length;
  if (num_tokens >= 1 && num_samples >= 1) return num_samples;
  throw base::InputError(source.path(), fmt::format("has {} tokens; one sample of {} needs {}", num_tokens,
                                                    sequence_length, sequence_length + 1));
}

void check_vocabulary(const TokenSource& source, int64_t offset, std::span<const int64_t> tokens, int64_t vocabulary) {
  // Negative ids are the largest of all without their sign.
  uint64_t largest = 0;
  for (const int64_t token : tokens) largest = std::max(largest, static_cast<uint64_t>(token));
  const auto bound = static_cast<uint64_t>(vocabulary);
  if (largest < bound || tokens.empty()) return;
  const auto bad = std::find_if(tokens.begin(), tokens.end(),
                                [bound](int64_t token) { return static_cast<uint64_t>(token) >= bound; });
  throw base::InputError(source.path(), fmt::format("token {} has the id {}; a vocabulary of {} has ids 0 to {}",
                                                    offset + (bad - tokens.begin()), *bad, vocabulary, vocabulary - 1));
}

void check_vocabulary_of_start(const TokenSource& source, int64_t vocabulary) {
  const int64_t num_checked = std::min(source.num_tokens(), kTokensCheckedAtStart);
  for_each_chunk(source, num_checked, [&](int64_t offset, const std::vector<int64_t>& tokens) {
    check_vocabulary(source, offset, tokens, vocabulary);
  });
}

}  // namespace layline::trainer::formats
