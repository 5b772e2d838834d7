// The kernels of simd/ as their callers see them: plain functions over a range of rows that run in the calling thread,
// gathered in one struct a family and element type. kernels<RmsNormKernels<float>>() is the one for the instruction set
// in use.
//
// Nothing here is inline or a template with a body: a function of that kind would be compiled once for each instruction
// set under one name, and the linker might keep the copy that the processor cannot run.
#pragma once

#include <cstdint>

#include "layline/trainer/kernels/instruction_set.h"

namespace layline::trainer::kernels::simd {

// A bfloat16 in memory. There is no arithmetic on it.
struct Bf16 {
  uint16_t bits;
};

// What an element type is computed in: bf16 in float.
template <typename T>
struct ArithmeticOf {
  using Type = T;
};
template <>
struct ArithmeticOf<Bf16> {
  using Type = float;
};
template <typename T>
using Arithmetic = typename ArithmeticOf<T>::Type;

// Rows are `hidden` elements, one after the other.
template <typename T>
struct RmsNormKernels {
  void (*forward)(const T* x, const T* weight, double epsilon, int64_t num_rows, int64_t hidden, T* y,
                  Arithmetic<T>* rstd);
  void (*apply)(const T* x, const Arithmetic<T>* rstd, const T* weight, int64_t num_rows, int64_t hidden, T* y);
  // residual may be null. dweight is added to.
  void (*backward)(const T* dy, const T* x, const Arithmetic<T>* rstd, const T* weight, const T* residual,
                   int64_t num_rows, int64_t hidden, T* dx, Arithmetic<T>* dweight);
};

// Rotates the heads of one position, `head_stride` elements apart.
template <typename T>
struct RopeKernels {
  void (*rotate)(T* heads, const Arithmetic<T>* cos, const Arithmetic<T>* sin, int64_t num_heads, int64_t head_stride,
                 int64_t half_head_size, bool inverse);
};

// gate_up: rows of 2 · feed_forward elements.
template <typename T>
struct SwigluKernels {
  void (*forward)(const T* gate_up, int64_t num_rows, int64_t feed_forward, T* y);
  void (*backward)(const T* dy, const T* gate_up, int64_t num_rows, int64_t feed_forward, T* dgate_up);
};

// One row of logits of which num_valid count.
template <typename T>
struct CrossEntropyKernels {
  Arithmetic<T> (*max)(const T* logits, int64_t num_valid);
  Arithmetic<T> (*sum_exp)(const T* logits, int64_t num_valid, Arithmetic<T> max);
  // logits = exp(logits - max) · scale / sum_exp
  void (*scaled_softmax)(T* logits, int64_t num_valid, Arithmetic<T> max, Arithmetic<T> sum_exp, Arithmetic<T> scale);
  Arithmetic<T> (*load)(const T* logit);
  void (*store)(T* logit, Arithmetic<T> value);
};

// A is float or double; C (the copy that computes) Bf16 or A. compute may be null.
template <typename A, typename C>
struct AdamWKernels {
  struct Factors {
    A gradient_scale;
    A decay;  // 1 - learning_rate · weight_decay
    A beta1, one_minus_beta1;
    A beta2, one_minus_beta2;
    A inverse_sqrt_correction2;
    A epsilon;
    A step_size;  // learning_rate / correction1
  };
  void (*update)(const Factors& factors, const A* grad, int64_t num_elements, A* master, A* exp_avg, A* exp_avg_sq,
                 C* compute);
};

template <typename T>
struct SumOfSquaresKernels {
  double (*sum)(const T* x, int64_t num_elements);
};

template <typename A, typename T>
struct AccumulateKernels {
  void (*add)(const T* grad, int64_t num_elements, A* main);
};

// Attention of one head: rows of head_size elements, `stride` elements apart, one a position.
template <typename T>
struct HeadRows {
  T* data;
  int64_t stride;
};

struct HeadShape {
  int64_t sequence_length;
  int64_t head_size;
  double scale;
};

// scratch: scratch_size(shape) elements, 64-byte aligned.
template <typename T>
struct AttentionForwardKernels {
  using A = Arithmetic<T>;

  // Queries are processed in blocks of this many; the last one may be shorter.
  int64_t block_size;

  int64_t (*scratch_size)(const HeadShape& shape);
  // lse: one a position.
  void (*block)(const HeadShape& shape, int64_t block, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                HeadRows<T> out, A* lse, A* scratch);
};

template <typename T>
struct AttentionBackwardKernels {
  using A = Arithmetic<T>;

  // One key-value head and the num_heads query heads that read it, which are head_stride elements apart in their
  // tensors and sequence_length apart in lse.
  struct Heads {
    int64_t num_heads;
    HeadRows<const T> q, k, v, out, dout;
    int64_t q_head_stride, out_head_stride, dout_head_stride, dq_head_stride;
    const A* lse;
    HeadRows<T> dq, dk, dv;
  };
  int64_t (*scratch_size)(const HeadShape& shape);
  void (*group)(const HeadShape& shape, const Heads& heads, A* scratch);
};

// One definition for each family, element type and instruction set, in the family's file.
template <typename Kernels, InstructionSet Set>
Kernels kernels_of();

}  // namespace layline::trainer::kernels::simd
