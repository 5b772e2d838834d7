// The tensors of attention between its projections: FlashAttention, or products with a score matrix (M14 of
// docs/model.md).
#pragma once

#include "layline/memory/layer_passes.h"
#include "layline/memory/tape.h"

namespace layline::memory {

class AttentionPassTape {
 public:
  AttentionPassTape(const spec::Job& job, const LayerShape& shape, const OperatorSizes& sizes);

  // What is kept beside queries, keys, values and output: a statistic a query, or the probabilities.
  double saved() const { return saved_; }
  // Of the output, where it is made batch first and wanted sequence first; 0 where that is the same.
  double copy() const { return copies_batch_ ? s_.query : 0; }

  // Live after: output and saved(); with keeps_both the output's copy, too.
  void forward(Tape& tape, bool keeps_both = false) const;
  // Live after: the gradients of queries, keys and values, beside what was live.
  void backward(Tape& tape) const;

 private:
  void scores_forward(Tape& tape) const;
  void scores_backward(Tape& tape) const;
  void to_key_heads(Tape& tape) const;

  const OperatorSizes& s_;
  bool is_flash_;
  bool copies_batch_;  // micro-batches of several sequences
  bool repeats_keys_;  // fewer key-value heads than heads
  bool has_one_head_;  // and one key-value head
  bool has_one_key_head_;
  double saved_ = 0, scratch_forward_ = 0, scratch_backward_ = 0;
};

}  // namespace layline::memory
