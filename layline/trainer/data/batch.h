// Samples as tensors: what one rank reads for one micro-batch.
//
// Legend: B sequences of a micro-batch, S tokens of a sequence.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "layline/trainer/data/data_set.h"

namespace layline::trainer::data {

struct MicroBatch {
  at::Tensor tokens_BS, targets_BS;  // int64, on the CPU
};

// Which part of a step's global batch. The data-parallel ranks take blocks of it one behind the other, and each its
// micro-batches likewise, so that every layout of dp and mb reads the same samples in a step.
struct BatchSlice {
  int64_t first_sample = 0;  // global index of the batch's first
  int64_t global_batch = 0;  // sequences; dp · mb divides it
  int64_t dp_rank = 0, dp = 1;
  int64_t mb = 1;     // sequences
  int64_t index = 0;  // of the micro-batch within this rank's, from 0
};

// Global index of the first sequence of the slice; the others follow it.
int64_t first_global_index(const BatchSlice& slice);

// Throws base::InputError for a token beyond the vocabulary.
MicroBatch read_micro_batch(const DataSet& data, const BatchSlice& slice);

}  // namespace layline::trainer::data
