#include "layline/trainer/model/layer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <vector>

#include "layline/trainer/kernels/swiglu.h"
#include "layline/trainer/model/attention.h"
#include "layline/trainer/model/norm.h"
#include "layline/trainer/model/parallel_linear.h"

namespace layline::trainer::model {

namespace {

// silu(gate) · up of [S, B, gate | up].
Activation swiglu(const at::Tensor& gate_up) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = kernels::swiglu(gate_up);
  }
  output =
      with_backward(output, {gate_up}, [gate_up = plain(gate_up)](const at::Tensor& dy) -> std::vector<at::Tensor> {
        return {kernels::swiglu_backward(dy, gate_up)};
      });
  return {output, Saved(output)};
}

}  // namespace

at::Tensor layer(const at::Tensor& hidden, const LayerWeights& weights, Context& context) {
  const Activation attention_input = rms_norm(hidden, weights.attention_norm, context);
  const at::Tensor qkv = column_parallel(attention_input, weights.qkv, context);
  const Activation heads = attention(qkv, weights.num_heads, weights.num_kv_heads, context);
  const at::Tensor middle = hidden + row_parallel(heads, weights.attention_output, context);

  const Activation mlp_input = rms_norm(middle, weights.mlp_norm, context);
  const Activation gated = swiglu(column_parallel(mlp_input, weights.gate_up, context));
  return middle + row_parallel(gated, weights.down, context);
}

}  // namespace layline::trainer::model
