// From text to token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace layline::trainer::tokenize {

// Everything const may be called by several threads at once.
class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer() = default;

  // Appends the ids of `text`.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  // Ids of text are below.
  virtual int64_t vocabulary() const = 0;
  // The id behind a document, where that is wanted: the model's end of sentence; 256 for bytes.
  virtual int32_t end_of_document() const = 0;
  // Whether text must be UTF-8.
  virtual bool wants_utf8() const = 0;
  // The same for the same ids: the name, and a hash of the model.
  virtual const std::string& identity() const = 0;
};

inline constexpr std::string_view kBytes = "bytes";

// "bytes": an id a byte, its value; else the file of a SentencePiece model. Throws base::InputError.
std::unique_ptr<const Tokenizer> open_tokenizer(const std::string& name);

}  // namespace layline::trainer::tokenize
