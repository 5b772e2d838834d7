// Products of small matrices that lie in the cache, in registers.
#pragma once

#include "layline/trainer/kernels/simd/operand.h"

namespace layline::trainer::kernels::simd {
namespace {

// Accumulators of a tile: rows times vectors. With the vectors of one step they fit the registers there are.
constexpr int kTileRows = 4;
constexpr int kTileVectors = kVectorBytes == 64 ? 4 : 2;

// A matrix of which each operand is multiplied with a row of the other one. Operand (row, k) is at
// data[row · row_stride + k · depth_stride], so that one laid out either way does.
template <typename Operand>
struct Left {
  const Operand* data;
  int64_t row_stride;
  int64_t depth_stride;
};

// Rows of whole vectors.
template <typename Element>
struct Rows {
  Element* data;
  int64_t stride;
};

template <typename Operands, int NumVectors, bool Accumulate>
void multiply_tile(Left<typename Operands::Operand> left, Rows<const typename Operands::Operand> right, int64_t depth,
                   Rows<typename Operands::A> result) {
  using A = typename Operands::A;
  using Operand = typename Operands::Operand;
  Vector<A> sums[kTileRows][NumVectors] = {};
  if constexpr (Accumulate) {
#pragma GCC unroll 4
    for (int row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 4
      for (int v = 0; v < NumVectors; ++v) sums[row][v] = load<A>(result.data + row * result.stride + v * kLanes<A>);
    }
  }
  const Operand* a = left.data;
  const Operand* b = right.data;
  for (int64_t k = 0; k < depth; ++k, a += left.depth_stride, b += right.stride) {
    Vector<Operand> values[NumVectors];
#pragma GCC unroll 4
    for (int v = 0; v < NumVectors; ++v) values[v] = load<Operand>(b + v * kLanes<Operand>);
#pragma GCC unroll 4
    for (int row = 0; row < kTileRows; ++row) {
      const Operand factor = a[row * left.row_stride];
#pragma GCC unroll 4
      for (int v = 0; v < NumVectors; ++v) sums[row][v] = Operands::add_product(sums[row][v], values[v], factor);
    }
  }
#pragma GCC unroll 4
  for (int row = 0; row < kTileRows; ++row) {
#pragma GCC unroll 4
    for (int v = 0; v < NumVectors; ++v) store<A>(result.data + row * result.stride + v * kLanes<A>, sums[row][v]);
  }
}

template <typename Operands, int NumVectors, bool Accumulate>
void multiply_panel(int64_t num_rows, Left<typename Operands::Operand> left,
                    Rows<const typename Operands::Operand> right, int64_t depth, Rows<typename Operands::A> result) {
  for (int64_t row = 0; row < num_rows; row += kTileRows) {
    multiply_tile<Operands, NumVectors, Accumulate>(left, right, depth, result);
    left.data += kTileRows * left.row_stride;
    result.data += kTileRows * result.stride;
  }
}

// Panels of NumVectors vectors, or fewer where fewer are left.
template <typename Operands, int NumVectors, bool Accumulate>
void multiply_panels(int64_t num_rows, int64_t num_columns, Left<typename Operands::Operand> left,
                     Rows<const typename Operands::Operand> right, int64_t depth, Rows<typename Operands::A> result) {
  constexpr int64_t kWidth = NumVectors * kLanes<typename Operands::A>;
  for (; num_columns >= kWidth; num_columns -= kWidth) {
    multiply_panel<Operands, NumVectors, Accumulate>(num_rows, left, right, depth, result);
    right.data += kWidth;
    result.data += kWidth;
  }
  if constexpr (NumVectors > 1) {
    if (num_columns > 0) {
      multiply_panels<Operands, NumVectors - 1, Accumulate>(num_rows, num_columns, left, right, depth, result);
    }
  }
}

// result = left · right, or result + left · right. num_rows is a multiple of kTileRows, num_columns of kLanes<A>; depth
// counts operands.
template <typename Operands, bool Accumulate>
[[gnu::flatten]] void multiply(int64_t num_rows, int64_t num_columns, Left<typename Operands::Operand> left,
                               Rows<const typename Operands::Operand> right, int64_t depth,
                               Rows<typename Operands::A> result) {
  multiply_panels<Operands, kTileVectors, Accumulate>(num_rows, num_columns, left, right, depth, result);
}

}  // namespace
}  // namespace layline::trainer::kernels::simd
