// Blockwise causal attention (Dao, arXiv:2307.08691). Scores are computed transposed, a row for each key and a lane for
// each query, so that soft-max never sums across lanes. All blocks are widened to the arithmetic type first; those at
// the end are filled up with zeros, which the causal mask keeps out of the results.
#include <cmath>

#include "layline/trainer/kernels/simd/exp.h"
#include "layline/trainer/kernels/simd/product.h"
#include "layline/trainer/kernels/simd/transpose.h"

namespace layline::trainer::kernels::simd {
namespace {

constexpr int64_t kBlock = 64;  // queries, and keys

template <typename A>
int64_t padded(int64_t head_size) {
  return (head_size + kLanes<A> - 1) / kLanes<A> * kLanes<A>;
}

int64_t num_blocks(const HeadShape& shape) { return (shape.sequence_length + kBlock - 1) / kBlock; }

// Of a block of positions, those that there are.
int64_t rows_in_block(const HeadShape& shape, int64_t block) {
  const int64_t left = shape.sequence_length - block * kBlock;
  return left < kBlock ? left : kBlock;
}

// A block of rows as [kBlock][padded head size], times a factor.
template <typename T>
[[gnu::flatten]] void load_block(const HeadShape& shape, HeadRows<const T> rows, int64_t block, Arithmetic<T> factor,
                                 Arithmetic<T>* to) {
  using A = Arithmetic<T>;
  const int64_t width = padded<A>(shape.head_size);
  const int64_t num_rows = rows_in_block(shape, block);
  for (int64_t row = 0; row < num_rows; ++row) {
    const T* from = rows.data + (block * kBlock + row) * rows.stride;
    for_each_vector<A>(shape.head_size, [&](int64_t i, auto count, int) {
      store<A>(to + row * width + i, load<A>(from + i, count) * factor);
    });
  }
  std::memset(to + num_rows * width, 0, sizeof(A) * (kBlock - num_rows) * width);
}

// A block [kBlock][padded head size] to rows, times a factor for each position.
template <typename T>
[[gnu::flatten]] void store_block(const HeadShape& shape, const Arithmetic<T>* from, const Arithmetic<T>* factors,
                                  int64_t block, HeadRows<T> rows) {
  using A = Arithmetic<T>;
  const int64_t width = padded<A>(shape.head_size);
  for (int64_t row = 0; row < rows_in_block(shape, block); ++row) {
    T* to = rows.data + (block * kBlock + row) * rows.stride;
    for_each_vector<A>(shape.head_size, [&](int64_t i, auto count, int) {
      store<A>(to + i, load<A>(from + row * width + i, count) * factors[row], count);
    });
  }
}

// scores[key][query] = value for later keys of the block on the diagonal.
template <typename A>
[[gnu::flatten]] void mask_future(A* scores, A value) {
  Vector<A> first_lanes;
  for (int lane = 0; lane < kLanes<A>; ++lane) first_lanes[lane] = static_cast<A>(lane);
  for (int64_t key = 1; key < kBlock; ++key) {
    for (int64_t start = 0; start < key; start += kLanes<A>) {
      A* score = scores + key * kBlock + start;
      store<A>(score, first_lanes < static_cast<A>(key - start) ? broadcast(value) : load<A>(score));
    }
  }
}

// Calls body(begin, length) for strips of keys in a block; of the one on the diagonal, a strip's scores exist for
// queries from `begin` on.
template <typename Body>
void for_each_strip(bool diagonal, const Body& body) {
  constexpr int64_t kStrip = 16;
  if (!diagonal) return body(0, kBlock);
  for (int64_t begin = 0; begin < kBlock; begin += kStrip) body(begin, kStrip);
}

// What soft-max knows of each query so far.
template <typename A>
struct RunningSoftmax {
  static constexpr int kVectors = kBlock / kLanes<A>;
  Vector<A> max[kVectors];
  Vector<A> sum[kVectors];

  RunningSoftmax() {
    for (int v = 0; v < kVectors; ++v) {
      max[v] = broadcast(static_cast<A>(-std::numeric_limits<double>::infinity()));
      sum[v] = Vector<A>{};
    }
  }

  // Replaces a block of scores by exp(score - max), and scales what was summed with smaller maxima.
  [[gnu::flatten]] void add(A* scores, A* out, int64_t width) {
    for (int v = 0; v < kVectors; ++v) {
      A* column = scores + v * kLanes<A>;
      Vector<A> largest = max[v];
      for (int64_t key = 0; key < kBlock; ++key) largest = maximum(load<A>(column + key * kBlock), largest);
      const Vector<A> factor = exp<A>(max[v] - largest);
      max[v] = largest;
      Vector<A> total = sum[v] * factor;
      for (int64_t key = 0; key < kBlock; ++key) {
        const Vector<A> probability = exp<A>(load<A>(column + key * kBlock) - largest);
        store<A>(column + key * kBlock, probability);
        total += probability;
      }
      sum[v] = total;
      for (int64_t d = 0; d < width; ++d) {
        A* value = out + d * kBlock + v * kLanes<A>;
        store<A>(value, load<A>(value) * factor);
      }
    }
  }
};

template <typename A>
int64_t forward_scratch(const HeadShape& shape) {
  return 4 * kBlock * padded<A>(shape.head_size) + kBlock * kBlock;
}

template <typename T>
void forward_block(const HeadShape& shape, int64_t block, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                   HeadRows<T> out, Arithmetic<T>* lse, Arithmetic<T>* scratch) {
  using A = Arithmetic<T>;
  const int64_t width = padded<A>(shape.head_size);
  A* queries_DQ = scratch;
  A* keys = queries_DQ + kBlock * width;  // and rows of queries, before
  A* values = keys + kBlock * width;
  A* out_DQ = values + kBlock * width;
  A* scores_KQ = out_DQ + kBlock * width;
  load_block<T>(shape, q, block, static_cast<A>(shape.scale), keys);
  transpose(keys, kBlock, width, queries_DQ);
  std::memset(out_DQ, 0, sizeof(A) * kBlock * width);
  RunningSoftmax<A> softmax;
  for (int64_t key_block = 0; key_block <= block; ++key_block) {
    load_block<T>(shape, k, key_block, 1, keys);
    load_block<T>(shape, v, key_block, 1, values);
    const bool diagonal = key_block == block;
    for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
      multiply<A, false>(length, kBlock - begin, {keys + begin * width, width, 1}, {queries_DQ + begin, kBlock}, width,
                         {scores_KQ + begin * (kBlock + 1), kBlock});
    });
    if (diagonal) mask_future(scores_KQ, static_cast<A>(-std::numeric_limits<double>::infinity()));
    softmax.add(scores_KQ, out_DQ, width);
    for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
      multiply<A, true>(width, kBlock - begin, {values + begin * width, 1, width},
                        {scores_KQ + begin * (kBlock + 1), kBlock}, length, {out_DQ + begin, kBlock});
    });
  }
  A inverse_sums[kBlock] = {};
  for (int64_t i = 0; i < rows_in_block(shape, block); ++i) {
    const A sum = softmax.sum[i / kLanes<A>][i % kLanes<A>];
    inverse_sums[i] = 1 / sum;
    lse[block * kBlock + i] = softmax.max[i / kLanes<A>][i % kLanes<A>] + std::log(sum);
  }
  transpose(out_DQ, width, kBlock, values);
  store_block<T>(shape, values, inverse_sums, block, out);
}

// What the backward pass keeps of all queries of a head, block by block.
template <typename A>
struct QueryBlocks {
  A* q_QD;  // times scale
  A* q_DQ;
  A* dout_QD;
  A* dout_DQ;
  A* dq_DQ;
  A* lse;
  A* delta;  // of dout · out, over the head
};

template <typename A>
int64_t backward_scratch(const HeadShape& shape) {
  const int64_t positions = num_blocks(shape) * kBlock;
  const int64_t width = padded<A>(shape.head_size);
  return positions * (7 * width + 2) + 2 * kBlock * width + 2 * kBlock * kBlock;
}

template <typename T>
[[gnu::flatten]] void load_queries(const HeadShape& shape, const typename AttentionKernels<T>::Backward& heads,
                                   int64_t head, const QueryBlocks<Arithmetic<T>>& to) {
  using A = Arithmetic<T>;
  const int64_t width = padded<A>(shape.head_size);
  const HeadRows<const T> q = {heads.q.data + head * heads.q_head_stride, heads.q.stride};
  const HeadRows<const T> out = {heads.out.data + head * heads.out_head_stride, heads.out.stride};
  const HeadRows<const T> dout = {heads.dout.data + head * heads.dout_head_stride, heads.dout.stride};
  for (int64_t block = 0; block < num_blocks(shape); ++block) {
    const int64_t start = block * kBlock * width;
    load_block<T>(shape, q, block, static_cast<A>(shape.scale), to.q_QD + start);
    transpose(to.q_QD + start, kBlock, width, to.q_DQ + start);
    load_block<T>(shape, dout, block, 1, to.dout_QD + start);
    transpose(to.dout_QD + start, kBlock, width, to.dout_DQ + start);
    for (int64_t row = 0; row < kBlock; ++row) {
      const int64_t position = block * kBlock + row;
      const bool exists = position < shape.sequence_length;
      Accumulator<A> products;
      for_each_vector<A>(exists ? shape.head_size : 0, [&](int64_t i, auto count, int slot) {
        products.slots[slot] +=
            load<A>(out.data + position * out.stride + i, count) * load<A>(to.dout_QD + start + row * width + i, count);
      });
      to.delta[position] = products.sum();
      to.lse[position] = exists ? heads.lse[head * shape.sequence_length + position] : 0;
    }
  }
  std::memset(to.dq_DQ, 0, sizeof(A) * num_blocks(shape) * kBlock * width);
}

// scores becomes the probabilities, dprobabilities the gradients of the scores.
template <typename A>
[[gnu::flatten]] void differentiate_softmax(A* scores, A* dprobabilities, const A* lse, const A* delta, bool diagonal) {
  for (int64_t start = 0; start < kBlock; start += kLanes<A>) {
    const Vector<A> lse_here = load<A>(lse + start);
    for (int64_t key = 0; key < kBlock; ++key) {
      A* score = scores + key * kBlock + start;
      store<A>(score, exp<A>(load<A>(score) - lse_here));
    }
  }
  if (diagonal) mask_future(scores, A{0});
  for (int64_t start = 0; start < kBlock; start += kLanes<A>) {
    const Vector<A> delta_here = load<A>(delta + start);
    for (int64_t key = 0; key < kBlock; ++key) {
      A* gradient = dprobabilities + key * kBlock + start;
      store<A>(gradient, load<A>(scores + key * kBlock + start) * (load<A>(gradient) - delta_here));
    }
  }
}

template <typename A>
struct KeyBlock {
  const A* keys;
  const A* values;
  A* dkeys;
  A* dvalues;
  A* scores_KQ;
  A* dscores_KQ;
};

// Adds the gradients that come from one block of queries and one of keys.
template <typename A>
void backward_block(int64_t width, const QueryBlocks<A>& queries, int64_t block, bool diagonal, const KeyBlock<A>& at) {
  const int64_t first = block * kBlock * width;
  for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
    const int64_t score = begin * (kBlock + 1);
    const int64_t key = begin * width;
    multiply<A, false>(length, kBlock - begin, {at.keys + key, width, 1}, {queries.q_DQ + first + begin, kBlock}, width,
                       {at.scores_KQ + score, kBlock});
    multiply<A, false>(length, kBlock - begin, {at.values + key, width, 1}, {queries.dout_DQ + first + begin, kBlock},
                       width, {at.dscores_KQ + score, kBlock});
  });
  differentiate_softmax<A>(at.scores_KQ, at.dscores_KQ, queries.lse + block * kBlock, queries.delta + block * kBlock,
                           diagonal);
  for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
    const int64_t score = begin * (kBlock + 1);
    const int64_t key = begin * width;
    multiply<A, true>(length, width, {at.scores_KQ + score, kBlock, 1}, {queries.dout_QD + first + key, width},
                      kBlock - begin, {at.dvalues + key, width});
    multiply<A, true>(length, width, {at.dscores_KQ + score, kBlock, 1}, {queries.q_QD + first + key, width},
                      kBlock - begin, {at.dkeys + key, width});
    multiply<A, true>(width, kBlock - begin, {at.keys + key, 1, width}, {at.dscores_KQ + score, kBlock}, length,
                      {queries.dq_DQ + first + begin, kBlock});
  });
}

template <typename T>
void backward_group(const HeadShape& shape, const typename AttentionKernels<T>::Backward& heads,
                    Arithmetic<T>* scratch) {
  using A = Arithmetic<T>;
  const int64_t width = padded<A>(shape.head_size);
  const int64_t positions = num_blocks(shape) * kBlock;
  const int64_t all = positions * width;
  const QueryBlocks<A> queries = {.q_QD = scratch,
                                  .q_DQ = scratch + all,
                                  .dout_QD = scratch + 2 * all,
                                  .dout_DQ = scratch + 3 * all,
                                  .dq_DQ = scratch + 4 * all,
                                  .lse = scratch + 7 * all,
                                  .delta = scratch + 7 * all + positions};
  A* dkeys = scratch + 5 * all;
  A* dvalues = scratch + 6 * all;
  A* keys = queries.delta + positions;
  A* values = keys + kBlock * width;
  A* scores = values + kBlock * width;
  std::memset(dkeys, 0, sizeof(A) * 2 * all);
  A scales[kBlock], ones[kBlock];
  for (A& scale : scales) scale = static_cast<A>(shape.scale);
  for (A& one : ones) one = 1;
  for (int64_t head = 0; head < heads.num_heads; ++head) {
    load_queries<T>(shape, heads, head, queries);
    const HeadRows<T> dq = {heads.dq.data + head * heads.dq_head_stride, heads.dq.stride};
    for (int64_t key_block = 0; key_block < num_blocks(shape); ++key_block) {
      const int64_t start = key_block * kBlock * width;
      load_block<T>(shape, heads.k, key_block, 1, keys);
      load_block<T>(shape, heads.v, key_block, 1, values);
      const KeyBlock<A> at = {.keys = keys,
                              .values = values,
                              .dkeys = dkeys + start,
                              .dvalues = dvalues + start,
                              .scores_KQ = scores,
                              .dscores_KQ = scores + kBlock * kBlock};
      for (int64_t block = key_block; block < num_blocks(shape); ++block) {
        backward_block<A>(width, queries, block, block == key_block, at);
      }
      transpose(queries.dq_DQ + start, width, kBlock, keys);
      store_block<T>(shape, keys, scales, key_block, dq);
    }
  }
  for (int64_t block = 0; block < num_blocks(shape); ++block) {
    store_block<T>(shape, dkeys + block * kBlock * width, ones, block, heads.dk);
    store_block<T>(shape, dvalues + block * kBlock * width, ones, block, heads.dv);
  }
}

template <typename T>
constexpr AttentionKernels<T> kKernels = {.block_size = kBlock,
                                          .forward_scratch = forward_scratch<Arithmetic<T>>,
                                          .forward_block = forward_block<T>,
                                          .backward_scratch = backward_scratch<Arithmetic<T>>,
                                          .backward_group = backward_group<T>};

}  // namespace

template <>
AttentionKernels<Bf16> kernels_of<AttentionKernels<Bf16>, kInstructionSet>() {
  return kKernels<Bf16>;
}
template <>
AttentionKernels<float> kernels_of<AttentionKernels<float>, kInstructionSet>() {
  return kKernels<float>;
}
template <>
AttentionKernels<double> kernels_of<AttentionKernels<double>, kInstructionSet>() {
  return kKernels<double>;
}

}  // namespace layline::trainer::kernels::simd
