// In which order the samples of one source are read: a function of (seed, index), in constant memory.
#pragma once

#include <cstdint>

namespace layline::trainer::data {

enum class Order { kShuffled, kSequential };

// A pseudo-random permutation of [0, size), one for each key: a Feistel network on the next power of 4, walked until it
// falls inside (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). Such a network makes even
// permutations only, which would show in small sizes and powers of 4; half of the keys exchange two values at the end.
// Not for secrets.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t operator()(int64_t index) const;

 private:
  uint64_t size_, key_;
  unsigned half_bits_;
};

struct SourceSample {
  int64_t epoch = 0;   // how many times the source has been read to its end before
  int64_t sample = 0;  // within the source
};

class SampleOrder {
 public:
  // num_samples: of the source, at least 1.
  SampleOrder(int64_t num_samples, Order order, uint64_t seed);

  // Sample `index`, from 0 on, of what is read of the source. Every epoch reads each sample once; shuffled, each epoch
  // in an order of its own.
  SourceSample source_sample(int64_t index) const;

  int64_t num_samples() const { return num_samples_; }

 private:
  int64_t num_samples_;
  Order order_;
  uint64_t seed_;
};

}  // namespace layline::trainer::data
