#include "layline/trainer/tokenize/tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <xxhash.h>

#include <algorithm>

#include "layline/base/error.h"
#include "layline/base/file.h"

namespace layline::trainer::tokenize {
namespace {

class ByteTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const size_t begin = ids.size();
    ids.resize(begin + text.size());
    std::transform(text.begin(), text.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                   [](char byte) { return static_cast<unsigned char>(byte); });
  }
  int64_t vocabulary() const override { return 256; }
  int32_t end_of_document() const override { return 256; }
  bool wants_utf8() const override { return false; }
  const std::string& identity() const override { return identity_; }

 private:
  std::string identity_{kBytes};
};

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path) {
    const std::string model = base::read_file(path);
    const auto status = processor_.LoadFromSerializedProto(model);
    if (model.empty() || !status.ok()) {
      throw base::InputError(path, "is no SentencePiece model; the tokenizers are bytes, and a file of such a model");
    }
    identity_ = fmt::format("sentencepiece {:016x}", XXH3_64bits(model.data(), model.size()));
    // What the file says of its end of sentence; models without one have -1.
    if (processor_.eos_id() >= 0) end_of_document_ = processor_.eos_id();
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    std::vector<int> found;
    if (const auto status = processor_.Encode({text.data(), text.size()}, &found); !status.ok()) {
      throw base::RunError("SentencePiece", status.ToString());
    }
    ids.insert(ids.end(), found.begin(), found.end());
  }
  int64_t vocabulary() const override { return processor_.GetPieceSize(); }
  int32_t end_of_document() const override {
    return end_of_document_ >= 0 ? end_of_document_ : static_cast<int32_t>(vocabulary());
  }
  bool wants_utf8() const override { return true; }
  const std::string& identity() const override { return identity_; }

 private:
  sentencepiece::SentencePieceProcessor processor_;
  std::string identity_;
  int32_t end_of_document_ = -1;
};

}  // namespace

std::unique_ptr<const Tokenizer> open_tokenizer(const std::string& name) {
  if (name == kBytes) return std::make_unique<ByteTokenizer>();
  return std::make_unique<SentencePieceTokenizer>(name);
}

}  // namespace layline::trainer::tokenize
