// One transformer layer of a Llama: attention and SwiGLU feed-forward, each after an RMSNorm and around a residual.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "layline/trainer/model/context.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

struct LayerWeights {
  ParameterGroup attention_norm;            // [H]
  ParameterGroup qkv;                       // [(N + 2K)·D, H], of this rank's heads
  ParameterGroup attention_output;          // [H, N·D]
  ParameterGroup mlp_norm;                  // [H]
  ParameterGroup gate_up;                   // [2F, H]
  ParameterGroup down;                      // [H, F]
  int64_t num_heads = 0, num_kv_heads = 0;  // of this rank
};

// [S or S/tp, B, H] → the same.
at::Tensor layer(const at::Tensor& hidden, const LayerWeights& weights, Context& context);

}  // namespace layline::trainer::model
