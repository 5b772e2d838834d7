#include "layline/memory/chunk_passes.h"

#include <algorithm>
#include <cmath>

#include "layline/memory/activations.h"
#include "layline/memory/parameters.h"
#include "layline/memory/tape.h"

namespace layline::memory {

namespace {

constexpr double kTokenBytes = 8;

// Bytes a token of what the head makes of the targets: which count, where they are in this rank's columns, their scale.
constexpr double kTargetBytes = 1 + kTokenBytes + 1 + kTokenBytes + 4 + 3;

class Chunk {
 public:
  Chunk(const spec::Job& job, const layout::Layout& layout, const LayerActivations& layer, const ChunkParts& chunk)
      : job_(job), layout_(layout), passes_(layer.passes), s_(layer.passes.sizes), norm_(layer.final_norm) {
    num_layers_ = chunk.num_layers;
    has_embedding_ = chunk.has_embedding;
    has_head_ = chunk.has_head;
    if (layout.checkpointing == layout::Checkpointing::kFull) {
      num_recomputed_ =
          layout.full_layers == 0 ? num_layers_ : std::min(num_layers_, static_cast<double>(layout.full_layers));
    }
    rows_ = has_embedding_ ? s_.tokens * kTokenBytes : 0;
    // The graph's leaf.
    input_ = has_embedding_ || num_recomputed_ > 0 || passes_.plain.keeps_input ? 0 : s_.hidden;
    gradient_of_input_ = s_.gathered > 0 ? s_.hidden : s_.whole;
  }

  ChunkPasses passes(bool defers) const {
    ChunkPasses result;
    result.kept = below(num_layers_) + (has_head_ ? norm_.kept + gradient_of_input_ : 0);
    result.deferred = num_layers_ * passes_.plain.deferred + (has_embedding_ ? rows_ + s_.whole : 0);
    result.forward = forward();
    result.backward = backward(defers);
    if (defers) result.weights = {result.deferred, passes_.plain.weights - passes_.plain.deferred, 0};
    return result;
  }

 private:
  // Kept by the embedding and the first `layers` layers.
  double below(double layers) const {
    const double recomputed = std::min(layers, num_recomputed_);
    return rows_ + input_ + recomputed * passes_.recomputed.kept + (layers - recomputed) * passes_.plain.kept;
  }
  bool has_plain() const { return num_recomputed_ < num_layers_; }

  Moment forward() const {
    Moment most = has_plain() ? forward_of(num_layers_ - 1, passes_.plain) : Moment{};
    if (num_recomputed_ > 0) keep_larger(most, forward_of(num_recomputed_ - 1, passes_.recomputed));
    if (has_head_) {
      keep_larger(most, {below(num_layers_) + norm_.kept, norm_.forward - norm_.kept, 0});
      keep_larger(most, head());
    }
    return most;
  }
  Moment forward_of(double index, const LayerPass& pass) const {
    return {below(index) + pass.kept, pass.forward - pass.kept, 0};
  }

  // The loss, chunk by chunk of tokens, with the gradients of the input and of the weight.
  Moment head() const {
    const double rows = std::min(logits_rows(job_.engine, s_.columns), s_.tokens);
    Tape tape(s_.gathered);
    tape.take(s_.tokens * (kTargetBytes + (layout_.mb > 1 ? kTokenBytes : 0)) - 3 * s_.tokens);
    tape.take(s_.whole);
    tape.take(rows * s_.columns * s_.element);
    tape.touch(rows * 4 * (layout_.tp > 1 ? 5 : 2));
    tape.touch(s_.is_narrow ? s_.columns * s_.hidden_units * s_.element : 0);
    tape.free(rows * s_.columns * s_.element);
    if (s_.gathered > 0) tape.touch(s_.hidden);
    return {below(num_layers_) + norm_.kept, s_.hidden + norm_.beside, tape.peak()};
  }

  Moment backward(bool defers) const {
    Moment most;
    if (has_head_) most = {below(num_layers_) + norm_.kept, norm_.backward - norm_.kept, 0};
    const double later = defers ? passes_.plain.deferred : 0;
    const bool is_held = !has_head_;  // the message, to the pass's end
    if (has_plain()) {
      keep_larger(most, backward_of(num_layers_ - 1, passes_.plain, is_held, defers));
      if (defers && num_layers_ > num_recomputed_ + 1) {
        Moment lowest = backward_of(num_recomputed_, passes_.plain, false, defers);
        lowest.transient += (num_layers_ - num_recomputed_ - 1) * later + held(is_held, defers);
        keep_larger(most, lowest);
      }
    }
    if (num_recomputed_ > 0) {
      Moment top = backward_of(num_recomputed_ - 1, passes_.recomputed, true, defers);
      const double above = num_layers_ - num_recomputed_;
      top.transient += above * later + (above > 0 ? held(is_held, defers) : 0);
      keep_larger(most, top);
      if (defers && num_recomputed_ > 1) {
        Moment lowest = backward_of(0, passes_.recomputed, true, defers);
        lowest.transient += (num_layers_ - 1) * later + held(is_held, defers);
        keep_larger(most, lowest);
      }
    }
    return most;
  }
  // The message, beside the layers above, of which the top one's weight gradient may hold it already.
  double held(bool is_held, bool defers) const { return is_held && (!defers || s_.gathered > 0) ? s_.hidden : 0; }
  Moment backward_of(double index, const LayerPass& pass, bool is_held, bool defers) const {
    const double bytes = defers ? (is_held ? pass.backward_of_held_deferring : pass.backward_deferring)
                                : (is_held ? pass.backward_of_held : pass.backward);
    return {below(index) + pass.kept, bytes - pass.kept, 0};
  }
  static void keep_larger(Moment& most, const Moment& other) {
    if (other.total() > most.total()) most = other;
  }

  const spec::Job& job_;
  const layout::Layout& layout_;
  const LayerPasses& passes_;
  const OperatorSizes& s_;
  const NormPass& norm_;
  double num_layers_ = 0, num_recomputed_ = 0;
  bool has_embedding_ = false, has_head_ = false;
  double rows_ = 0, input_ = 0, gradient_of_input_ = 0;
};

}  // namespace

ChunkPasses chunk_passes(const spec::Job& job, const layout::Layout& layout, const LayerActivations& layer,
                         const ChunkParts& chunk, bool defers) {
  return Chunk(job, layout, layer, chunk).passes(defers);
}

}  // namespace layline::memory
