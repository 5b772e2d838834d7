// A stream of tokens in a file.
//
//   std::unique_ptr<const TokenSource> source = open_tokens("corpus");   // open_tokens.h
//   std::vector<int64_t> tokens(512);
//   source->read(offset, tokens);
//   check_vocabulary(*source, offset, tokens, 32000);
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>

namespace layline::trainer::formats {

// Everything const may be called by several threads at once.
class TokenSource {
 public:
  TokenSource() = default;
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;
  virtual ~TokenSource() = default;

  // The file that holds the tokens: for messages.
  virtual const std::string& path() const = 0;
  virtual int64_t num_tokens() const = 0;
  // Tokens [offset, offset + out.size()), which must be there. Ids are as the file has them, so they may be negative.
  virtual void read(int64_t offset, std::span<int64_t> out) const = 0;
  // No token of the stream can be larger, whatever the file holds.
  virtual int64_t largest_possible_token() const = 0;

  // Reads the whole stream the first time. -1 if it is empty.
  int64_t largest_token() const;

 private:
  mutable std::once_flag scanned_;
  mutable int64_t largest_token_ = -1;
};

// How many samples of so many tokens and one target more are in the stream. Throws base::InputError when there is none.
int64_t count_samples(const TokenSource& source, int64_t sequence_length);

// Throws base::InputError when one of `tokens`, read at `offset`, is no id of a vocabulary of that size: file,
// position, id, allowed.
void check_vocabulary(const TokenSource& source, int64_t offset, std::span<const int64_t> tokens, int64_t vocabulary);

// The same for the first 16 M tokens of the stream, to be done once before training starts; the rest shows when read.
void check_vocabulary_of_start(const TokenSource& source, int64_t vocabulary);

}  // namespace layline::trainer::formats
