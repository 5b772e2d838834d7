#include "layline/trainer/kernels/simd/attention_block.h"

namespace layline::trainer::kernels::simd {
namespace {

// What is kept of all queries of a head, block by block: operands as pairs of rows (_QD) and transposed (_DQ).
template <typename Operands>
struct Queries {
  typename Operands::Operand *q_QD, *q_DQ, *dout_QD, *dout_DQ;
  typename Operands::A* dq_DQ;
  typename Operands::A* lse;
  typename Operands::A* delta;  // the sum of dout · out over the head
};

// Room for one block of keys, and for what is computed for it.
template <typename Operands>
struct Keys {
  typename Operands::Operand *key_rows, *key_pairs, *value_rows;
  typename Operands::A *scores_KQ, *dscores_KQ;
  typename Operands::Operand* packed;
};

template <typename T>
int64_t scratch_size(const HeadShape& shape) {
  const int64_t positions = num_blocks(shape) * kBlock;
  const int64_t width = padded_size<T>(shape);
  return positions * (7 * width + 2) + 3 * kBlock * width + 3 * kBlock * kBlock;
}

// Hands out parts of the scratch memory.
template <typename A>
class Scratch {
 public:
  explicit Scratch(A* memory) : next_(memory) {}

  template <typename Element = A>
  Element* take(int64_t num_elements) {
    static_assert(sizeof(Element) == sizeof(A));
    A* const part = next_;
    next_ += num_elements;
    return reinterpret_cast<Element*>(part);
  }

 private:
  A* next_;
};

template <typename T>
[[gnu::flatten]] Arithmetic<T> dot(const T* a, const T* b, int64_t num_elements) {
  using A = Arithmetic<T>;
  Accumulator<A> products;
  for_each_vector<A>(num_elements, [&](int64_t i, auto count, int slot) {
    products.slots[slot] += load<A>(a + i, count) * load<A>(b + i, count);
  });
  return products.sum();
}

// rows: room for a block.
template <typename Operands>
void load_queries(const HeadShape& shape, const typename AttentionBackwardKernels<typename Operands::T>::Heads& heads,
                  int64_t head, typename Operands::Operand* rows, const Queries<Operands>& to) {
  using T = typename Operands::T;
  const int64_t width = padded_size<T>(shape);
  const HeadRows<const T> q = {heads.q.data + head * heads.q_head_stride, heads.q.stride};
  const HeadRows<const T> dout = {heads.dout.data + head * heads.dout_head_stride, heads.dout.stride};
  const T* out = heads.out.data + head * heads.out_head_stride;
  for (int64_t block = 0; block < num_blocks(shape); ++block) {
    const int64_t start = block * kBlock * width / Operands::kDepth;
    load_pairs<Operands>(shape, q, block, to.q_QD + start);
    load_rows<Operands>(shape, q, block, rows);
    transpose(rows, kBlock, width / Operands::kDepth, to.q_DQ + start);
    load_pairs<Operands>(shape, dout, block, to.dout_QD + start);
    load_rows<Operands>(shape, dout, block, rows);
    transpose(rows, kBlock, width / Operands::kDepth, to.dout_DQ + start);
  }
  for (int64_t position = 0; position < num_blocks(shape) * kBlock; ++position) {
    const bool exists = position < shape.sequence_length;
    to.delta[position] =
        exists ? dot(out + position * heads.out.stride, dout.data + position * dout.stride, shape.head_size) : 0;
    to.lse[position] = exists ? heads.lse[head * shape.sequence_length + position] : 0;
  }
  std::memset(to.dq_DQ, 0, sizeof(*to.dq_DQ) * num_blocks(shape) * kBlock * width);
}

// scores becomes the probabilities, dprobabilities the gradients of the scaled scores.
template <typename A>
[[gnu::flatten]] void differentiate_softmax(A* scores, A* dprobabilities, A scale, const A* lse, const A* delta,
                                            bool diagonal) {
  for (int64_t start = 0; start < kBlock; start += kLanes<A>) {
    const Vector<A> lse_here = load<A>(lse + start);
    for (int64_t key = 0; key < kBlock; ++key) {
      A* score = scores + key * kBlock + start;
      store<A>(score, exp<A>(load<A>(score) * scale - lse_here));
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

// Adds the gradients that come from one block of queries and one of keys.
template <typename Operands>
void add_block(const HeadShape& shape, const Queries<Operands>& queries, int64_t block, bool diagonal,
               const Keys<Operands>& keys, typename Operands::A* dkeys, typename Operands::A* dvalues) {
  using A = typename Operands::A;
  const int64_t width = padded_size<typename Operands::T>(shape);
  const int64_t start = block * kBlock * width;
  const int64_t operand = start / Operands::kDepth;
  multiply_heads<Operands>(width, diagonal, keys.key_rows, queries.q_DQ + operand, keys.scores_KQ);
  multiply_heads<Operands>(width, diagonal, keys.value_rows, queries.dout_DQ + operand, keys.dscores_KQ);
  differentiate_softmax<A>(keys.scores_KQ, keys.dscores_KQ, static_cast<A>(shape.scale), queries.lse + block * kBlock,
                           queries.delta + block * kBlock, diagonal);
  add_over_queries<Operands>(width, diagonal, pairs_of_columns<Operands>(keys.scores_KQ, kBlock, kBlock, keys.packed),
                             queries.dout_QD + operand, dvalues);
  add_over_queries<Operands>(width, diagonal, pairs_of_columns<Operands>(keys.dscores_KQ, kBlock, kBlock, keys.packed),
                             queries.q_QD + operand, dkeys);
  add_over_keys<Operands>(width, diagonal, keys.key_pairs,
                          pairs_of_rows<Operands>(keys.dscores_KQ, kBlock, kBlock, keys.packed), queries.dq_DQ + start);
}

template <typename T>
void group(const HeadShape& shape, const typename AttentionBackwardKernels<T>::Heads& heads, Arithmetic<T>* memory) {
  using A = Arithmetic<T>;
  using Operands = typename OperandsOf<T>::Type;
  using Operand = typename Operands::Operand;
  const int64_t width = padded_size<T>(shape);
  const int64_t block_elements = kBlock * width;
  const int64_t positions = num_blocks(shape) * kBlock;
  const int64_t all = positions * width;
  const int64_t operands = all / Operands::kDepth;
  Scratch<A> scratch(memory);
  const Queries<Operands> queries = {.q_QD = scratch.template take<Operand>(operands),
                                     .q_DQ = scratch.template take<Operand>(operands),
                                     .dout_QD = scratch.template take<Operand>(operands),
                                     .dout_DQ = scratch.template take<Operand>(operands),
                                     .dq_DQ = scratch.take(all),
                                     .lse = scratch.take(positions),
                                     .delta = scratch.take(positions)};
  const Keys<Operands> keys = {.key_rows = scratch.template take<Operand>(block_elements),
                               .key_pairs = scratch.template take<Operand>(block_elements),
                               .value_rows = scratch.template take<Operand>(block_elements),
                               .scores_KQ = scratch.take(kBlock * kBlock),
                               .dscores_KQ = scratch.take(kBlock * kBlock),
                               .packed = scratch.template take<Operand>(kBlock * kBlock)};
  A* dkeys = scratch.take(all);
  A* dvalues = scratch.take(all);
  std::memset(dkeys, 0, sizeof(A) * all);
  std::memset(dvalues, 0, sizeof(A) * all);
  A scales[kBlock], ones[kBlock];
  for (A& scale : scales) scale = static_cast<A>(shape.scale);
  for (A& one : ones) one = 1;
  for (int64_t head = 0; head < heads.num_heads; ++head) {
    load_queries<Operands>(shape, heads, head, keys.key_rows, queries);
    const HeadRows<T> dq = {heads.dq.data + head * heads.dq_head_stride, heads.dq.stride};
    for (int64_t key_block = 0; key_block < num_blocks(shape); ++key_block) {
      const int64_t start = key_block * block_elements;
      load_rows<Operands>(shape, heads.k, key_block, keys.key_rows);
      load_pairs<Operands>(shape, heads.k, key_block, keys.key_pairs);
      load_rows<Operands>(shape, heads.v, key_block, keys.value_rows);
      for (int64_t block = key_block; block < num_blocks(shape); ++block) {
        add_block<Operands>(shape, queries, block, block == key_block, keys, dkeys + start, dvalues + start);
      }
      A* dq_QD = reinterpret_cast<A*>(keys.key_rows);  // these keys are no longer needed
      transpose(queries.dq_DQ + start, width, kBlock, dq_QD);
      store_block<T>(shape, dq_QD, scales, key_block, dq);
    }
  }
  for (int64_t block = 0; block < num_blocks(shape); ++block) {
    store_block<T>(shape, dkeys + block * block_elements, scales, block, heads.dk);
    store_block<T>(shape, dvalues + block * block_elements, ones, block, heads.dv);
  }
}

template <typename T>
constexpr AttentionBackwardKernels<T> kKernels = {.scratch_size = scratch_size<T>, .group = group<T>};

}  // namespace

template <>
AttentionBackwardKernels<Bf16> kernels_of<AttentionBackwardKernels<Bf16>, kInstructionSet>() {
  return kKernels<Bf16>;
}
template <>
AttentionBackwardKernels<float> kernels_of<AttentionBackwardKernels<float>, kInstructionSet>() {
  return kKernels<float>;
}
template <>
AttentionBackwardKernels<double> kernels_of<AttentionBackwardKernels<double>, kInstructionSet>() {
  return kKernels<double>;
}

}  // namespace layline::trainer::kernels::simd
