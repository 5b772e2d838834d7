// What the products of attention multiply, in two ways. Widened: in the type of the sums. Bf16Pairs: two bf16 that
// follow each other along the dim that is summed over, which one instruction multiplies and adds. Code that takes an
// Operands type counts depth in operands: kDepth positions each.
#pragma once

#include "layline/trainer/kernels/simd/vector.h"

namespace layline::trainer::kernels::simd {
namespace {

template <typename Element>
struct Widened {
  using T = Element;  // in memory
  using A = Arithmetic<T>;
  using Operand = A;
  static constexpr int64_t kDepth = 1;

  static Vector<A> add_product(Vector<A> sum, Vector<A> right, A left) { return sum + right * left; }

  // A row of num_elements, filled up with zeros to `width`, the next multiple of kDepth · kLanes.
  static void load_row(const T* from, int64_t num_elements, int64_t /*width*/, A* to) {
    for_each_vector<A>(num_elements, [&](int64_t i, auto count, int) { store<A>(to + i, load<A>(from + i, count)); });
  }
};

#if defined(__AVX512BF16__)
struct Bf16Pairs {
  using T = Bf16;
  using A = float;
  using Operand = uint32_t;  // the first in the lower half
  static constexpr int64_t kDepth = 2;

  static Vector<float> add_product(Vector<float> sum, Vector<uint32_t> right, uint32_t left) {
    return _mm512_dpbf16_ps(sum, std::bit_cast<__m512bh>(right), std::bit_cast<__m512bh>(broadcast(left)));
  }

  // A row of neighbours.
  static void load_row(const Bf16* from, int64_t num_elements, int64_t width, uint32_t* to) {
    std::memset(to + num_elements / 2, 0, sizeof(*to) * (width / 2 - num_elements / 2));
    std::memcpy(to, from, sizeof(*from) * num_elements);
  }

  // Elements of two rows become pairs; second may be null for a row of zeros.
  static void load_two_rows(const Bf16* first, const Bf16* second, int64_t num_elements, int64_t width, uint32_t* to) {
    store<uint32_t>(to + width - kLanes<float>, Vector<uint32_t>{});  // there are at most so many to fill up
    for_each_vector<float>(num_elements, [&](int64_t i, auto count, int) {
      const Vector<float> low = load<float>(first + i, count);
      store<uint32_t>(to + i, paired(low, second == nullptr ? Vector<float>{} : load<float>(second + i, count)));
    });
  }

  // Of values that are bf16.
  static Vector<uint32_t> paired(Vector<float> first, Vector<float> second) {
    return std::bit_cast<Vector<uint32_t>>(first) >> 16 | std::bit_cast<Vector<uint32_t>>(second);
  }

  static Vector<float> rounded(Vector<float> values) { return widened<16>(rounded_to_bf16(values)); }
};
#endif

// A matrix of results that becomes an operand, by pairs of rows: [num_rows / kDepth][num_columns]. For Widened it is
// one already.
template <typename Operands>
const typename Operands::Operand* pairs_of_rows(const typename Operands::A* from, int64_t num_rows, int64_t num_columns,
                                                typename Operands::Operand* to) {
  if constexpr (Operands::kDepth == 1) {
    return from;
  } else {
    for (int64_t pair = 0; pair < num_rows / 2; ++pair) {
      for (int64_t column = 0; column < num_columns; column += kLanes<float>) {
        const float* value = from + 2 * pair * num_columns + column;
        const Vector<float> first = Operands::rounded(load<float>(value));
        store<uint32_t>(to + pair * num_columns + column,
                        Operands::paired(first, Operands::rounded(load<float>(value + num_columns))));
      }
    }
    return to;
  }
}

// The same by pairs of columns: [num_rows][num_columns / kDepth].
template <typename Operands>
const typename Operands::Operand* pairs_of_columns(const typename Operands::A* from, int64_t num_rows,
                                                   int64_t num_columns, typename Operands::Operand* to) {
  if constexpr (Operands::kDepth == 1) {
    return from;
  } else {
    for (int64_t i = 0; i < num_rows * num_columns; i += kLanes<float>) {
      const auto narrow = rounded_to_bf16(load<float>(from + i));
      std::memcpy(to + i / 2, &narrow, sizeof(narrow));
    }
    return to;
  }
}

}  // namespace
}  // namespace layline::trainer::kernels::simd
