// The vocab-parallel head and its cross-entropy, a chunk of tokens at a time: logits of a whole micro-batch are never
// held.
#pragma once

#include <ATen/core/Tensor.h>

#include "layline/trainer/model/context.h"
#include "layline/trainer/model/embedding.h"
#include "layline/trainer/model/parameter.h"

namespace layline::trainer::model {

// Targets that do not count.
inline constexpr int64_t kIgnoredTarget = -100;

// hidden [S or S/tp, B, H], targets_SB int64 → loss_scale · Σ of the losses of the tokens whose target is not ignored,
// a scalar in fp32 (fp64), the same on every tp rank. In grad mode the gradients are computed here, chunk by chunk,
// while the logits are there: the weight's is added at once, the input's is kept for the backward pass, which must be
// started with one.
at::Tensor head_loss(const Activation& hidden, const ParameterGroup& weight, const VocabularyPart& part,
                     const at::Tensor& targets_SB, double loss_scale, Context& context);

// hidden → logits [S, B, V of this rank, with padding]; without a gradient.
at::Tensor head_logits(const at::Tensor& hidden, const ParameterGroup& weight, Context& context);

}  // namespace layline::trainer::model
