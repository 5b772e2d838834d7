// Samples to train or validate on.
//
//   const DataSet data({.sources = {{"books", 0.7}, {"code", 0.3}}, .sequence_length = 512, .vocabulary = 32000});
//   data.sample(global_index, tokens, targets);
//
// Sample i of a source has the tokens i·S … i·S + S - 1 of its stream, S the sequence length, and as targets the tokens
// one further on. The token of each position is thus a function of (seed, global index) alone, whatever the layout; the
// global batches of a run follow one another, so a run that resumes continues to the token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layline/trainer/data/blend.h"
#include "layline/trainer/data/sample_order.h"
#include "layline/trainer/formats/token_source.h"

namespace layline::trainer::data {

// A target that counts in no loss.
inline constexpr int64_t kIgnored = -100;

struct WeightedPath {
  std::string path;   // as formats::open_tokens takes it
  double weight = 1;  // in samples, relative to the other sources
};

struct DataSetOptions {
  std::vector<WeightedPath> sources;
  int64_t sequence_length = 0;  // tokens of a sample, at least 1
  int64_t vocabulary = 0;       // ids from 0 to vocabulary - 1 are legal
  Order order = Order::kShuffled;
  uint64_t seed = 1;  // of the order
};

class DataSet {
 public:
  // Opens the files. Throws base::InputError when one is missing, damaged, shorter than one sample, or begins with
  // tokens beyond the vocabulary.
  explicit DataSet(const DataSetOptions& options);

  // Fills both spans, of sequence_length() each, for any index from 0 on; may be called by several threads at once.
  // Targets may be kIgnored. Throws base::InputError for a token beyond the vocabulary.
  void sample(int64_t global_index, std::span<int64_t> tokens_S, std::span<int64_t> targets_S) const;

  struct Location {
    size_t source = 0;
    int64_t epoch = 0, sample = 0;
  };
  Location locate(int64_t global_index) const;

  int64_t sequence_length() const { return sequence_length_; }
  // Of all sources, each read once; the mix reads small sources of large weight again before it has been through.
  int64_t num_samples() const;

 private:
  struct Source {
    std::unique_ptr<const formats::TokenSource> tokens;
    SampleOrder order;
  };

  int64_t sequence_length_, vocabulary_;
  Blend blend_;
  std::vector<Source> sources_;
};

}  // namespace layline::trainer::data
