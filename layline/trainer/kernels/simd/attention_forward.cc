#include "layline/trainer/kernels/simd/attention_block.h"

namespace layline::trainer::kernels::simd {
namespace {

// What soft-max knows of each query so far. Scores are scaled here.
template <typename A>
struct RunningSoftmax {
  static constexpr int kVectors = kBlock / kLanes<A>;
  A scale;
  Vector<A> max[kVectors];  // of scaled scores
  Vector<A> sum[kVectors];

  explicit RunningSoftmax(A scale_of_scores) : scale(scale_of_scores) {
    for (int v = 0; v < kVectors; ++v) {
      max[v] = broadcast(static_cast<A>(-std::numeric_limits<double>::infinity()));
      sum[v] = Vector<A>{};
    }
  }

  // Replaces a block of scores by exp(scale · score - max), and scales what was summed with smaller maxima.
  [[gnu::flatten]] void add(A* scores, A* out, int64_t width) {
    for (int v = 0; v < kVectors; ++v) {
      A* column = scores + v * kLanes<A>;
      Vector<A> largest = max[v];
      for (int64_t key = 0; key < kBlock; ++key) largest = maximum(load<A>(column + key * kBlock) * scale, largest);
      const Vector<A> factor = exp<A>(max[v] - largest);
      max[v] = largest;
      Vector<A> total = sum[v] * factor;
      for (int64_t key = 0; key < kBlock; ++key) {
        const Vector<A> probability = exp<A>(load<A>(column + key * kBlock) * scale - largest);
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

template <typename T>
int64_t scratch_size(const HeadShape& shape) {
  return 4 * kBlock * padded_size<T>(shape) + 2 * kBlock * kBlock;
}

template <typename T>
void block(const HeadShape& shape, int64_t block, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
           HeadRows<T> out, Arithmetic<T>* lse, Arithmetic<T>* scratch) {
  using A = Arithmetic<T>;
  using Operands = typename OperandsOf<T>::Type;
  using Operand = typename Operands::Operand;
  static_assert(sizeof(Operand) == sizeof(A));
  const int64_t width = padded_size<T>(shape);
  const int64_t block_elements = kBlock * width;
  auto* queries_DQ = reinterpret_cast<Operand*>(scratch);
  auto* keys = reinterpret_cast<Operand*>(scratch + block_elements);  // and rows of queries, before
  auto* values = reinterpret_cast<Operand*>(scratch + 2 * block_elements);
  A* out_DQ = scratch + 3 * block_elements;
  A* scores_KQ = scratch + 4 * block_elements;
  auto* packed = reinterpret_cast<Operand*>(scores_KQ + kBlock * kBlock);
  load_rows<Operands>(shape, q, block, keys);
  transpose(keys, kBlock, width / Operands::kDepth, queries_DQ);
  std::memset(out_DQ, 0, sizeof(A) * block_elements);
  RunningSoftmax<A> softmax(static_cast<A>(shape.scale));
  for (int64_t key_block = 0; key_block <= block; ++key_block) {
    const bool diagonal = key_block == block;
    load_rows<Operands>(shape, k, key_block, keys);
    load_pairs<Operands>(shape, v, key_block, values);
    multiply_heads<Operands>(width, diagonal, keys, queries_DQ, scores_KQ);
    if (diagonal) mask_future(scores_KQ, static_cast<A>(-std::numeric_limits<double>::infinity()));
    softmax.add(scores_KQ, out_DQ, width);
    add_over_keys<Operands>(width, diagonal, values, pairs_of_rows<Operands>(scores_KQ, kBlock, kBlock, packed),
                            out_DQ);
  }
  A inverse_sums[kBlock] = {};
  for (int64_t i = 0; i < rows_in_block(shape, block); ++i) {
    const A sum = softmax.sum[i / kLanes<A>][i % kLanes<A>];
    inverse_sums[i] = 1 / sum;
    lse[block * kBlock + i] = softmax.max[i / kLanes<A>][i % kLanes<A>] + std::log(sum);
  }
  A* out_QD = scratch;  // queries are no longer needed
  transpose(out_DQ, width, kBlock, out_QD);
  store_block<T>(shape, out_QD, inverse_sums, block, out);
}

template <typename T>
constexpr AttentionForwardKernels<T> kKernels = {
    .block_size = kBlock, .scratch_size = scratch_size<T>, .block = block<T>};

}  // namespace

template <>
AttentionForwardKernels<Bf16> kernels_of<AttentionForwardKernels<Bf16>, kInstructionSet>() {
  return kKernels<Bf16>;
}
template <>
AttentionForwardKernels<float> kernels_of<AttentionForwardKernels<float>, kInstructionSet>() {
  return kKernels<float>;
}
template <>
AttentionForwardKernels<double> kernels_of<AttentionForwardKernels<double>, kInstructionSet>() {
  return kKernels<double>;
}

}  // namespace layline::trainer::kernels::simd
