// Transposition of matrices whose sides are multiples of kLanes.
#pragma once

#include <utility>

#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

// a0 b0 a1 b1 … of the first (Offset 0) or second (Offset kLanes / 2) halves.
template <typename A, int Offset, int... I>
Vector<A> interleaved(Vector<A> a, Vector<A> b, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(a, b, (Offset + I / 2 + (I % 2) * kLanes<A>)...);
}

// kLanes by kLanes. Each round of shuffles moves one bit of the row's number into the column's.
template <typename A>
void transpose_tile(const A* from, int64_t from_stride, A* to, int64_t to_stride) {
  constexpr int kSize = kLanes<A>;
  using Lanes = std::make_integer_sequence<int, kSize>;
  Vector<A> rows[kSize];
#pragma GCC unroll 16
  for (int i = 0; i < kSize; ++i) rows[i] = load<A>(from + i * from_stride);
#pragma GCC unroll 4
  for (int round = 1; round < kSize; round *= 2) {
    Vector<A> next[kSize];
#pragma GCC unroll 8
    for (int i = 0; i < kSize / 2; ++i) {
      next[2 * i] = interleaved<A, 0>(rows[i], rows[i + kSize / 2], Lanes{});
      next[2 * i + 1] = interleaved<A, kSize / 2>(rows[i], rows[i + kSize / 2], Lanes{});
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSize; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kSize; ++i) store<A>(to + i * to_stride, rows[i]);
}

template <typename A>
[[gnu::flatten]] void transpose(const A* from, int64_t num_rows, int64_t num_columns, A* to) {
  for (int64_t row = 0; row < num_rows; row += kLanes<A>) {
    for (int64_t column = 0; column < num_columns; column += kLanes<A>) {
      transpose_tile<A>(from + row * num_columns + column, num_columns, to + column * num_rows + row, num_rows);
    }
  }
}

}  // namespace
}  // namespace layline::trainer::kernels::simd
