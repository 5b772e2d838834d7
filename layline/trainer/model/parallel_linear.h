// Linear layers whose weight is spread over the tensor-parallel ranks (Shoeybi et al. 2019, section 3; with sequence
// parallelism Korthikanti et al. 2022, section 4.2.2).
//
// Legend: S sequence, B micro-batch, I input and O output width; /tp: a rank's part. With sequence parallelism the
// activations outside a column–row pair hold S/tp positions, else all S. Weights are [O, I].
#pragma once

#include <ATen/core/Tensor.h>

#include "layline/trainer/model/autograd.h"
#include "layline/trainer/model/context.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

// input [S or S/tp, B, I] → [S, B, O/tp]. Gathers the sequence first where it is sharded. Backward: the input's
// gradient is summed over tp (and scattered) while the weight's is computed.
at::Tensor column_parallel(const Activation& input, const ParameterGroup& weight, Context& context);

// input [S, B, I/tp] → [S or S/tp, B, O], summed over tp (and scattered).
at::Tensor row_parallel(const Activation& input, const ParameterGroup& weight, Context& context);

// main_grad [O, I] += dy [S, B, O]ᵀ · x [S, B, I], in the main gradient's dtype, and tells that it did.
void add_weight_gradient(const ParameterGroup& weight, const at::Tensor& dy, const at::Tensor& x);

// The same without telling, for callers that add several products.
void add_product(const ParameterGroup& weight, const at::Tensor& dy, const at::Tensor& x);

// x [.., I] · weightᵀ → [.., O].
at::Tensor product(const at::Tensor& x, const at::Tensor& weight);

// In place, over the tensor-parallel ranks.
void sum_over_tp(const at::Tensor& partial, Context& context);

// The whole sequence from every rank's part, and back: [S/tp, B, H] → [S, B, H]; a sum that leaves each rank its part.
at::Tensor gather_sequence(const at::Tensor& part, Context& context);
at::Tensor reduce_to_sequence_part(const at::Tensor& partial, Context& context);

}  // namespace layline::trainer::model
