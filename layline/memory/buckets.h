// The flat buffers that hold a rank's weights and gradients, and the scratch memory of its reductions, of engines that
// keep both in buckets of a layer each (M3 and M10 of docs/model.md).
#pragma once

#include <cstdint>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::memory {

// One virtual stage's layers and ends.
struct ChunkParts {
  double num_layers = 0;
  bool has_embedding = false;
  bool has_head = false;
  bool operator==(const ChunkParts&) const = default;
};

struct Buckets {
  double elements = 0;        // of all, padded
  double largest = 0;         // of one, elements
  double largest_direct = 0;  // of those whose all-reduce is direct
  double norm_elements = 0;   // of the bucket whose gradients are summed over tp too, 0: none
  double key_elements = 0;    // keys and values in the bucket that is summed over replicas of their heads, 0: none
  double table_elements = 0;  // of a tied table that another stage holds too, 0: none

  void add(const Buckets& other, double count);
};

// Of a chunk. Parameters of a product start at multiples of bucket_alignment_bytes, and buckets are a multiple of dp
// times that long.
Buckets buckets_of(const spec::Job& job, const layout::Layout& layout, const ChunkParts& chunk);

// Bytes that a reduction of `elements`, of so many bytes each, needs on one rank of the group: small ones come whole
// from every rank, larger ones in segments. is_scatter: a reduce-scatter, else an all-reduce.
double reduction_scratch_bytes(const spec::Engine& engine, double elements, double element_bytes, double group_size,
                               bool is_scatter);

}  // namespace layline::memory
