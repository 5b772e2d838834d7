// A layer's forward and backward pass, operator by operator, of engines whose working set is followed that way
// (WorkingSet::kOperators): what is live at the moment that needs most (docs/model.md, M14).
//
// All of one micro-batch and one rank, in bytes. Hidden activations are the layer's own share under sequence
// parallelism.
#pragma once

#include "layline/spec/job.h"

namespace layline::memory {

struct LayerShape;

// Sizes of the tensors that operators make, in bytes.
struct OperatorSizes {
  OperatorSizes() = default;
  OperatorSizes(const spec::Job& job, const LayerShape& shape);

  double tokens = 0;        // of a micro-batch
  double part_tokens = 0;   // of them, on this rank under sequence parallelism
  double hidden_units = 0;  // h
  double element = 0;       // bytes of a weight or activation
  bool is_narrow = false;   // 16 bit: statistics and sums are wider than activations

  double hidden = 0;    // [part_tokens, h]
  double whole = 0;     // [tokens, h]
  double gathered = 0;  // `whole` where sequence parallelism makes one from the parts, else 0
  double wide = 0;      // `hidden` in 32 bit
  double row = 0;       // a 32-bit number for each token of `hidden`
  double query = 0;     // [tokens, q]: queries, attention's output
  double key = 0;       // [tokens, κ]
  double qkv = 0;       // query + 2 key
  double inner = 0;     // [tokens, f / t]
  double score = 0;     // one byte for each attention score
  double mask = 0;      // one byte for each pair of positions

  double columns = 0;  // of the vocabulary on this rank

  double qkv_weight = 0, output_weight = 0, gate_up_weight = 0, down_weight = 0;
};

// One kind of layer: as it is, or recomputed.
struct LayerPass {
  double kept = 0;              // from forward to backward, its input included where the layer keeps it
  double forward = 0;           // peak of the forward pass; live before: the input
  double backward = 0;          // peak of the backward pass; live before: kept and the output's gradient
  double backward_of_held = 0;  // the same where somebody else holds the output's gradient to the end
  bool keeps_input = true;

  // Where weight gradients are put off (zero bubble): what waits for them, and the two peaks of that.
  double deferred = 0;
  double backward_deferring = 0, backward_of_held_deferring = 0;
  double weights = 0;  // peak of the layer's weight gradients; live before: deferred
};

struct LayerPasses {
  OperatorSizes sizes;
  LayerPass plain;       // without recomputation, or with selective recomputation
  LayerPass recomputed;  // with full recomputation
};

// Tokens whose logits are there at one time.
double logits_rows(const spec::Engine& engine, double columns);

LayerPasses layer_passes(const spec::Job& job, const LayerShape& shape);

// The final norm: what it keeps, and its backward pass above that and its output's gradient.
struct NormPass {
  double kept = 0;     // with its input where it keeps that
  double beside = 0;   // its input while the head runs, where it does not
  double forward = 0;  // peak; live before: the input
  double backward = 0;
};
NormPass final_norm_pass(const OperatorSizes& sizes, const LayerShape& shape);

}  // namespace layline::memory
