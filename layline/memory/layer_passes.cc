#include "layline/memory/layer_passes.h"

#include <algorithm>
#include <cmath>

#include "layline/memory/activations.h"
#include "layline/memory/attention_pass.h"
#include "layline/memory/norm_pass.h"
#include "layline/memory/parameters.h"
#include "layline/memory/tape.h"

namespace layline::memory {

OperatorSizes::OperatorSizes(const spec::Job& job, const LayerShape& shape) {
  const spec::Model& model = job.model;
  const double t = static_cast<double>(shape.tp);
  hidden_units = static_cast<double>(model.hidden);
  tokens = static_cast<double>(shape.mb) * static_cast<double>(job.sequence_length) / static_cast<double>(shape.cp);
  part_tokens = shape.sp ? tokens / t : tokens;
  is_narrow = job.precision != spec::Precision::kFp32;
  element = is_narrow ? 2 : 4;

  hidden = part_tokens * hidden_units * element;
  whole = tokens * hidden_units * element;
  gathered = shape.sp && shape.tp > 1 ? whole : 0;
  wide = part_tokens * hidden_units * 4;
  row = part_tokens * 4;
  query = tokens * static_cast<double>(model.attention_width()) / t * element;
  key = tokens * kv_width_per_rank(model, shape.tp) * element;
  qkv = query + 2 * key;
  inner = tokens * static_cast<double>(model.ffn_hidden) / t * element;
  score = tokens * static_cast<double>(model.num_heads) / t * static_cast<double>(job.sequence_length);
  mask = static_cast<double>(job.sequence_length) * static_cast<double>(job.sequence_length);

  columns = padded_vocab(model, shape.tp) / t;

  qkv_weight = qkv / tokens * hidden_units;
  output_weight = query / tokens * hidden_units;
  gate_up_weight = 2 * inner / tokens * hidden_units;
  down_weight = inner / tokens * hidden_units;
}

double logits_rows(const spec::Engine& engine, double columns) {
  return std::max(engine.smallest_logits_chunk, std::floor(engine.logits_chunk_elements / columns));
}

namespace {

using Sum = NormPassTape::Sum;

struct BackwardOptions {
  bool is_held = false;  // the output's gradient, by somebody else
  bool defers = false;   // weight gradients
  bool frees_input = true;
};

class Layer {
 public:
  Layer(const spec::Job& job, const LayerShape& shape, const OperatorSizes& sizes, bool is_selective)
      : s_(sizes),
        norm_(sizes, shape.norm, is_selective),
        attention_(job, shape, sizes),
        is_selective_(is_selective),
        is_part_(shape.sp && shape.tp > 1) {}

  bool keeps_input() const { return norm_.keeps_input(); }
  double kept() const {
    const double inputs = (norm_.keeps_input() ? 2 : 0) + (is_selective_ ? 0 : 2);
    return inputs * s_.hidden + 2 * norm_.kept() + s_.qkv + 3 * s_.inner +
           (is_selective_ ? 0 : s_.query + attention_.saved());
  }
  double deferred() const { return 2 * s_.hidden + s_.qkv + s_.query + 3 * s_.inner + 2 * s_.whole; }

  void forward(Tape& tape, bool is_recorded) const;
  void backward(Tape& tape, const BackwardOptions& options) const;
  void weights(Tape& tape) const;

 private:
  // A product's result before it is added in 32 bit; those in 32 bit are added at once.
  double product(double weight) const { return s_.is_narrow ? weight : 0; }
  void row_parallel(Tape& tape) const;
  void column_backward(Tape& tape, double width, double weight, bool defers) const;
  void attention_backward(Tape& tape, bool defers) const;

  const OperatorSizes& s_;
  NormPassTape norm_;
  AttentionPassTape attention_;
  bool is_selective_, is_part_;
};

// With the residual: live before and after: one `hidden` more.
void Layer::row_parallel(Tape& tape) const {
  tape.take(s_.whole);
  if (is_part_) {
    tape.take(s_.hidden);
    tape.free(s_.whole);
  }
  tape.replace(s_.hidden);
}

// What the layer's function holds is freed at its end.
void Layer::forward(Tape& tape, bool is_recorded) const {
  norm_.forward(tape, is_recorded);
  tape.take(s_.gathered);
  tape.take(s_.qkv);
  tape.free(s_.gathered);
  attention_.forward(tape);
  if (!is_recorded || is_selective_) tape.free(attention_.saved());
  row_parallel(tape);
  norm_.forward(tape, is_recorded);
  tape.take(s_.gathered);
  tape.take(2 * s_.inner);
  tape.free(s_.gathered);
  tape.take(s_.inner);
  if (!is_recorded) tape.free(2 * s_.inner);
  row_parallel(tape);
}

void Layer::column_backward(Tape& tape, double width, double weight, bool defers) const {
  if (is_selective_) norm_.rebuild(tape);
  tape.take(s_.whole);
  if (is_part_) {
    tape.take(s_.hidden);
    tape.free(s_.whole);
  }
  if (defers) return;
  tape.touch(s_.gathered + product(weight));
  tape.free(s_.hidden + width);
}

void Layer::attention_backward(Tape& tape, bool defers) const {
  tape.take(s_.gathered);
  if (is_selective_) attention_.forward(tape, /*keeps_both=*/true);
  tape.take(s_.query);
  if (!defers) {
    tape.touch(product(s_.output_weight));
    tape.free(s_.gathered + (is_selective_ ? attention_.copy() : 0));
  }
  attention_.backward(tape);
  tape.take(s_.qkv);
  // Gradients, statistics, inputs, the output's gradient; the output, where the product before is done with it.
  const bool keeps_output = defers && (!is_selective_ || attention_.copy() == 0);
  tape.free(s_.qkv + attention_.saved() + s_.qkv + s_.query + (keeps_output ? 0 : s_.query));
}

void Layer::backward(Tape& tape, const BackwardOptions& options) const {
  const bool defers = options.defers;
  const bool holds_whole = defers && !is_part_;  // a product that waits holds the gradient that others add to
  tape.take(s_.gathered);
  tape.take(s_.inner);
  if (!defers) {
    tape.touch(product(s_.down_weight));
    tape.free(s_.gathered + s_.inner);
  }
  tape.take(2 * s_.inner);
  tape.free(3 * s_.inner);
  column_backward(tape, 2 * s_.inner, s_.gate_up_weight, defers);
  norm_.backward(tape, options.is_held || holds_whole ? Sum::kInNewTensor : Sum::kInPlace, /*frees_input=*/true);
  attention_backward(tape, defers);
  column_backward(tape, s_.qkv, s_.qkv_weight, defers);
  norm_.backward(tape, holds_whole ? Sum::kInNewTensor : Sum::kInPlace, options.frees_input);
}

void Layer::weights(Tape& tape) const {
  tape.touch(product(s_.down_weight));
  tape.free(s_.inner + s_.whole);
  tape.touch(s_.gathered + product(s_.gate_up_weight));
  tape.free(s_.hidden + 2 * s_.inner);
  tape.touch(product(s_.output_weight));
  tape.free(s_.query + s_.whole);
  tape.touch(s_.gathered + product(s_.qkv_weight));
}

LayerPass plain_pass(const Layer& layer, const OperatorSizes& s) {
  LayerPass pass;
  pass.keeps_input = layer.keeps_input();
  pass.kept = layer.kept();
  pass.deferred = layer.deferred();
  Tape forward(s.hidden);
  layer.forward(forward, /*is_recorded=*/true);
  pass.forward = forward.peak();
  const auto backward = [&](const BackwardOptions& options) {
    Tape tape(pass.kept + s.hidden);
    layer.backward(tape, options);
    return tape.peak();
  };
  pass.backward = backward({});
  pass.backward_of_held = backward({.is_held = true});
  pass.backward_deferring = backward({.defers = true});
  pass.backward_of_held_deferring = backward({.is_held = true, .defers = true});
  Tape weights(pass.deferred);
  layer.weights(weights);
  pass.weights = weights.peak();
  return pass;
}

LayerPass recomputed_pass(const Layer& layer, const LayerPass& plain, const OperatorSizes& s) {
  LayerPass pass;
  pass.kept = s.hidden;
  pass.deferred = plain.deferred;
  pass.weights = plain.weights;
  Tape forward(s.hidden);
  layer.forward(forward, /*is_recorded=*/false);
  pass.forward = forward.peak();
  const auto backward = [&](bool defers) {
    Tape again(2 * s.hidden);
    layer.forward(again, /*is_recorded=*/true);
    Tape tape(s.hidden + s.hidden + plain.kept - (plain.keeps_input ? s.hidden : 0));
    layer.backward(tape, {.is_held = true, .defers = defers, .frees_input = false});
    return std::max(again.peak(), tape.peak());
  };
  pass.backward = pass.backward_of_held = backward(false);
  pass.backward_deferring = pass.backward_of_held_deferring = backward(true);
  return pass;
}

}  // namespace

LayerPasses layer_passes(const spec::Job& job, const LayerShape& shape) {
  LayerPasses passes{OperatorSizes(job, shape), {}, {}};
  const bool is_selective = shape.checkpointing == layout::Checkpointing::kSelective;
  const Layer layer(job, shape, passes.sizes, is_selective);
  passes.plain = plain_pass(layer, passes.sizes);
  if (!is_selective) passes.recomputed = recomputed_pass(layer, passes.plain, passes.sizes);
  return passes;
}

NormPass final_norm_pass(const OperatorSizes& s, const LayerShape& shape) {
  const NormPassTape norm(s, shape.norm, shape.checkpointing == layout::Checkpointing::kSelective);
  NormPass pass;
  pass.kept = norm.kept() + (norm.keeps_input() ? s.hidden : 0);
  pass.beside = norm.keeps_input() ? 0 : s.hidden;
  Tape forward(s.hidden);
  norm.forward(forward, /*is_recorded=*/true);
  pass.forward = forward.peak();
  Tape backward(pass.kept + s.hidden);
  norm.backward(backward, Sum::kAlone, /*frees_input=*/true);
  pass.backward = backward.peak();
  return pass;
}

}  // namespace layline::memory
