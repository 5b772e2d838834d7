#include "layline/trainer/data/data_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "layline/base/error.h"
#include "layline/trainer/data/random.h"
#include "layline/trainer/formats/open_tokens.h"

namespace layline::trainer::data {
namespace {

std::vector<double> weights_of(const std::vector<WeightedPath>& sources) {
  std::vector<double> weights;
  for (const WeightedPath& source : sources) weights.push_back(source.weight);
  return weights;
}

}  // namespace

DataSet::DataSet(const DataSetOptions& options)
    : sequence_length_(options.sequence_length), vocabulary_(options.vocabulary), blend_(weights_of(options.sources)) {
  assert(sequence_length_ >= 1 && vocabulary_ >= 1);
  for (const WeightedPath& source : options.sources) {
    std::unique_ptr<const formats::TokenSource> tokens = formats::open_tokens(source.path);
    const int64_t num_samples = formats::count_samples(*tokens, sequence_length_);
    formats::check_vocabulary_of_start(*tokens, vocabulary_);
    // Sources of one size should not be read in one order.
    const uint64_t seed = mix(options.seed, sources_.size());
    sources_.push_back({.tokens = std::move(tokens), .order = SampleOrder(num_samples, options.order, seed)});
  }
}

DataSet::Location DataSet::locate(int64_t global_index) const {
  const Blend::Draw draw = blend_.draw(global_index);
  const SourceSample sample = sources_[draw.source].order.source_sample(draw.index);
  return {.source = draw.source, .epoch = sample.epoch, .sample = sample.sample};
}

void DataSet::sample(int64_t global_index, std::span<int64_t> tokens_S, std::span<int64_t> targets_S) const {
  assert(static_cast<int64_t>(tokens_S.size()) == sequence_length_ && targets_S.size() == tokens_S.size());
  const Location location = locate(global_index);
  const formats::TokenSource& source = *sources_[location.source].tokens;
  const int64_t first = location.sample * sequence_length_;
  source.read(first, tokens_S);
  source.read(first + sequence_length_, targets_S.last(1));
  formats::check_vocabulary(source, first, tokens_S, vocabulary_);
  formats::check_vocabulary(source, first + sequence_length_, targets_S.last(1), vocabulary_);
  std::copy(tokens_S.begin() + 1, tokens_S.end(), targets_S.begin());
}

int64_t DataSet::num_samples() const {
  return std::accumulate(sources_.begin(), sources_.end(), int64_t{0},
                         [](int64_t sum, const Source& source) { return sum + source.order.num_samples(); });
}

}  // namespace layline::trainer::data
