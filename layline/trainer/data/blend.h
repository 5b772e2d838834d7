// Several sources mixed into one stream of samples, in proportion to weights.
//
//   const Blend blend({0.7, 0.3});
//   blend.draw(5);                    // {.source = 0, .index = 3}: sample 5 of the mix is sample 3 of source 0
//
// Of any number of samples from the start, each source has its share to within a sample or so, as with the greedy rule
// of Megatron-LM (build_blending_indices: next the source that is furthest behind its share). But each draw is a
// function of its index alone, without a table that grows with the steps. The rule is Webster's method of
// apportionment: sample k of a source of weight w is due at (k + 1/2) / w, and samples come in the order in which they
// are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace layline::trainer::data {

class Blend {
 public:
  // Weights need not add up to 1; they count to a part in 2^32, and none counts as less. Throws base::InputError when
  // there is none, or one is not a number above 0.
  explicit Blend(const std::vector<double>& weights);

  struct Draw {
    size_t source = 0;
    int64_t index = 0;  // how many of this source came before
  };

  // Sample `index` of the mix, from 0 up to 2^60. Takes time with the square of the number of sources: 10 ns for one,
  // under a microsecond for ten.
  Draw draw(int64_t index) const;

  size_t num_sources() const { return weights_.size(); }

 private:
  std::vector<uint64_t> weights_;
  uint64_t sum_ = 0;
};

}  // namespace layline::trainer::data
