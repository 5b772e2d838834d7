// Causal self-attention with rotary embeddings between the query-key-value product and the output product.
#pragma once

#include <ATen/core/Tensor.h>

#include "layline/trainer/model/autograd.h"
#include "layline/trainer/model/context.h"

namespace layline::trainer::model {

// qkv [S, B, (N + 2K)·D] of this rank's N query heads and K key-value heads, queries first; it is overwritten (nobody
// else may use it) → [S, B, N·D]. With recomputation of attention only the rotated qkv is kept.
Activation attention(const at::Tensor& qkv, int64_t num_heads, int64_t num_kv_heads, Context& context);

}  // namespace layline::trainer::model
