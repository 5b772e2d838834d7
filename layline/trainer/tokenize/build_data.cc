#include "layline/trainer/tokenize/build_data.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "layline/base/error.h"
#include "layline/trainer/formats/mapped_file.h"
#include "layline/trainer/tokenize/building.h"
#include "layline/trainer/tokenize/documents.h"
#include "layline/trainer/tokenize/encode_piece.h"
#include "layline/trainer/tokenize/tokenizer.h"

namespace layline::trainer::tokenize {
namespace {

using formats::MappedFile;
using formats::TokenType;
using nlohmann::ordered_json;

constexpr int64_t kMebibyte = 1 << 20;

// Of the pieces that are at work or wait to be written, for each thread.
constexpr size_t kPiecesAThread = 3;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// What of the input and the options changes the output.
std::string settings_of(const BuildOptions& options, const Tokenizer& tokenizer, TokenType type) {
  ordered_json json = {{"tokenizer", tokenizer.identity()},
                       {"json_key", options.json_key},
                       {"token_bytes", formats::num_bytes(type)},
                       {"appends_end_of_document", options.appends_end_of_document},
                       {"piece_bytes", options.piece_bytes}};
  for (const std::string& input : options.inputs) {
    struct stat info = {};
    ::stat(input.c_str(), &info);
    json["inputs"].push_back({input, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec});
  }
  return json.dump();
}

TokenType type_for(const BuildOptions& options, const Tokenizer& tokenizer) {
  int64_t largest = tokenizer.vocabulary() - 1;
  if (options.appends_end_of_document) largest = std::max<int64_t>(largest, tokenizer.end_of_document());
  if (!options.type) {
    for (const TokenType type : {TokenType::kU8, TokenType::kU16}) {
      if (largest <= formats::largest_value(type)) return type;
    }
    return TokenType::kI32;
  }
  if (largest <= formats::largest_value(*options.type)) return *options.type;
  throw base::InputError("--dtype", fmt::format("cannot hold the ids of this tokenizer, which go to {}", largest));
}

class Build {
 public:
  Build(const BuildOptions& options, const std::function<bool()>& is_cancelled)
      : options_(options), is_cancelled_(is_cancelled), tokenizer_(open_tokenizer(options.tokenizer)) {
    encode_.type = type_for(options, *tokenizer_);
    encode_.json_key = options.json_key;
    encode_.appends_end_of_document = options.appends_end_of_document;
    for (const std::string& input : options.inputs) {
      files_.push_back(std::make_unique<MappedFile>(input));
      const std::string_view text = text_of(*files_.back());
      for (const Piece& piece : cut(text, files_.size() - 1, !is_json_lines(input), options.piece_bytes)) {
        pieces_.push_back(piece);
      }
    }
    if (pieces_.empty()) throw base::InputError(options.inputs.front(), "has no text, and no other input has any");
  }

  BuildResult run(base::ProgressSink* sink) {
    Building building(options_.output, settings_of(options_, *tokenizer_, encode_.type));
    const int64_t done_before = bytes_until(building.state().num_pieces);
    if (!building.state().is_complete) encode_all(building, sink, done_before);
    BuildResult result;
    result.is_complete = building.state().is_complete || building.state().num_pieces == num_pieces();
    result.type = encode_.type;
    result.num_documents = building.state().num_documents;
    result.num_empty_documents = building.state().num_empty_documents;
    result.num_tokens = building.state().num_tokens;
    result.num_bytes = building.state().bin_bytes;
    result.input_bytes = bytes_until(building.state().num_pieces);
    result.resumed_bytes = done_before;
    if (result.is_complete) building.finish(encode_.type);
    return result;
  }

 private:
  int64_t num_pieces() const { return static_cast<int64_t>(pieces_.size()); }
  int64_t bytes_until(int64_t end) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < end; ++i) sum += size_of(pieces_[static_cast<size_t>(i)]);
    return sum;
  }
  static int64_t size_of(const Piece& piece) { return piece.end_bytes - piece.begin_bytes; }

  EncodedPiece encode(int64_t index) const {
    const Piece& piece = pieces_[static_cast<size_t>(index)];
    return encode_piece(text_of(*files_[piece.input]), options_.inputs[piece.input], piece, *tokenizer_, encode_);
  }

  // In order at both ends, in parallel between. Notes what is written, whatever ends it.
  void encode_all(Building& building, base::ProgressSink* sink, int64_t done_before) {
    base::Progress progress(sink, "tokenizing, MiB", bytes_until(num_pieces()) / kMebibyte);
    progress.advance(done_before / kMebibyte);
    int64_t next = building.state().num_pieces, noted_bytes = building.state().bin_bytes, shown = done_before;
    const auto take = [&](tbb::flow_control& control) -> int64_t {
      if (next == num_pieces() || is_cancelled_()) {
        control.stop();
        return 0;
      }
      return next++;
    };
    const auto write = [&](const std::shared_ptr<EncodedPiece>& piece) {
      const int64_t before = shown;
      shown += size_of(pieces_[static_cast<size_t>(building.state().num_pieces)]);
      building.append(*piece);
      if (building.state().bin_bytes - noted_bytes >= options_.sync_bytes) {
        building.note();
        noted_bytes = building.state().bin_bytes;
      }
      progress.advance(shown / kMebibyte - before / kMebibyte);
    };
    const size_t num_tokens = kPiecesAThread * static_cast<size_t>(tbb::this_task_arena::max_concurrency());
    tbb::parallel_pipeline(
        num_tokens,
        tbb::make_filter<void, int64_t>(tbb::filter_mode::serial_in_order, take) &
            tbb::make_filter<int64_t, std::shared_ptr<EncodedPiece>>(
                tbb::filter_mode::parallel,
                [this](int64_t index) { return std::make_shared<EncodedPiece>(encode(index)); }) &
            tbb::make_filter<std::shared_ptr<EncodedPiece>, void>(tbb::filter_mode::serial_in_order, write));
    building.note();
  }

  const BuildOptions& options_;
  const std::function<bool()>& is_cancelled_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  EncodeOptions encode_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<Piece> pieces_;
};

}  // namespace

BuildResult build_data(const BuildOptions& options, base::ProgressSink* sink,
                       const std::function<bool()>& is_cancelled) {
  return Build(options, is_cancelled).run(sink);
}

}  // namespace layline::trainer::tokenize
