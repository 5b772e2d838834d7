// What the forward and the backward pass of blockwise causal attention (Dao, arXiv:2307.08691) share. Scores are
// computed transposed, a row for each key and a lane for each query, so that soft-max never sums across lanes. Blocks
// at the end are filled up with zeros, which the causal mask keeps out of the results.
#pragma once

#include <cmath>

#include "layline/trainer/kernels/simd/exp.h"
#include "layline/trainer/kernels/simd/product.h"
#include "layline/trainer/kernels/simd/transpose.h"

namespace layline::trainer::kernels::simd {
namespace {

constexpr int64_t kBlock = 64;  // queries, and keys

// How bf16 is multiplied; all else in its own type.
template <typename T>
struct OperandsOf {
  using Type = Widened<T>;
};
#if defined(__AVX512BF16__)
template <>
struct OperandsOf<Bf16> {
  using Type = Bf16Pairs;
};
#endif

// The head size filled up to whole vectors of operands.
template <typename T>
int64_t padded_size(const HeadShape& shape) {
  constexpr int64_t kMultiple = kLanes<Arithmetic<T>> * OperandsOf<T>::Type::kDepth;
  return (shape.head_size + kMultiple - 1) / kMultiple * kMultiple;
}

inline int64_t num_blocks(const HeadShape& shape) { return (shape.sequence_length + kBlock - 1) / kBlock; }

// Of a block of positions, those that there are.
inline int64_t rows_in_block(const HeadShape& shape, int64_t block) {
  const int64_t left = shape.sequence_length - block * kBlock;
  return left < kBlock ? left : kBlock;
}

// A block as [kBlock][padded size / kDepth].
template <typename Operands>
[[gnu::flatten]] void load_rows(const HeadShape& shape, HeadRows<const typename Operands::T> rows, int64_t block,
                                typename Operands::Operand* to) {
  const int64_t head_width = padded_size<typename Operands::T>(shape);
  const int64_t width = head_width / Operands::kDepth;
  const int64_t num_rows = rows_in_block(shape, block);
  for (int64_t row = 0; row < num_rows; ++row) {
    Operands::load_row(rows.data + (block * kBlock + row) * rows.stride, shape.head_size, head_width, to + row * width);
  }
  std::memset(to + num_rows * width, 0, sizeof(*to) * (kBlock - num_rows) * width);
}

// A block as [kBlock / kDepth][padded size].
template <typename Operands>
[[gnu::flatten]] void load_pairs(const HeadShape& shape, HeadRows<const typename Operands::T> rows, int64_t block,
                                 typename Operands::Operand* to) {
  if constexpr (Operands::kDepth == 1) {
    load_rows<Operands>(shape, rows, block, to);
  } else {
    const int64_t width = padded_size<typename Operands::T>(shape);
    const int64_t num_rows = rows_in_block(shape, block);
    const auto* from = rows.data + block * kBlock * rows.stride;
    for (int64_t row = 0; row < num_rows; row += 2, from += 2 * rows.stride) {
      Operands::load_two_rows(from, row + 1 < num_rows ? from + rows.stride : nullptr, shape.head_size, width,
                              to + row / 2 * width);
    }
    const int64_t num_pairs = (num_rows + 1) / 2;
    std::memset(to + num_pairs * width, 0, sizeof(*to) * (kBlock / 2 - num_pairs) * width);
  }
}

// A block [kBlock][padded size] to rows, times a factor for each position.
template <typename T>
[[gnu::flatten]] void store_block(const HeadShape& shape, const Arithmetic<T>* from, const Arithmetic<T>* factors,
                                  int64_t block, HeadRows<T> rows) {
  using A = Arithmetic<T>;
  const int64_t width = padded_size<T>(shape);
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

// result[key][query] = keys · queries over the head. keys: [kBlock][padded size / kDepth], queries the transposed one.
template <typename Operands>
void multiply_heads(int64_t width, bool diagonal, const typename Operands::Operand* keys,
                    const typename Operands::Operand* queries, typename Operands::A* result) {
  const int64_t depth = width / Operands::kDepth;
  for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
    multiply<Operands, false>(length, kBlock - begin, {keys + begin * depth, depth, 1}, {queries + begin, kBlock},
                              depth, {result + begin * (kBlock + 1), kBlock});
  });
}

// result[head][query] += sum over keys of values[key][head] · scores[key][query], both as pairs of rows.
template <typename Operands>
void add_over_keys(int64_t width, bool diagonal, const typename Operands::Operand* values,
                   const typename Operands::Operand* scores, typename Operands::A* result) {
  for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
    const int64_t pair = begin / Operands::kDepth;
    multiply<Operands, true>(width, kBlock - begin, {values + pair * width, 1, width},
                             {scores + pair * kBlock + begin, kBlock}, length / Operands::kDepth,
                             {result + begin, kBlock});
  });
}

// result[key][head] += sum over queries of scores[key][query] · queries[query][head]: pairs of columns, pairs of rows.
template <typename Operands>
void add_over_queries(int64_t width, bool diagonal, const typename Operands::Operand* scores,
                      const typename Operands::Operand* queries, typename Operands::A* result) {
  constexpr int64_t kWidth = kBlock / Operands::kDepth;
  for_each_strip(diagonal, [&](int64_t begin, int64_t length) {
    const int64_t pair = begin / Operands::kDepth;
    multiply<Operands, true>(length, width, {scores + begin * kWidth + pair, kWidth, 1},
                             {queries + pair * width, width}, kWidth - pair, {result + begin * width, width});
  });
}

}  // namespace
}  // namespace layline::trainer::kernels::simd
