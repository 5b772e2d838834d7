#include "layline/memory/attention_pass.h"

#include <algorithm>
#include <cmath>

#include "layline/memory/activations.h"

namespace layline::memory {

namespace {

// Elements of the flash kernels' scratch, in blocks of 64 positions, of 32 bit each.
constexpr double kBlock = 64;
double forward_scratch(double width) { return 4 * kBlock * width + 2 * kBlock * kBlock; }
double backward_scratch(double positions, double width) {
  return positions * (7 * width + 2) + 3 * kBlock * width + 3 * kBlock * kBlock;
}

double round_up(double value, double multiple) { return std::ceil(value / multiple) * multiple; }

}  // namespace

AttentionPassTape::AttentionPassTape(const spec::Job& job, const LayerShape& shape, const OperatorSizes& sizes)
    : s_(sizes), is_flash_(shape.attention != layout::AttentionKernel::kUnfused), copies_batch_(shape.mb > 1) {
  const int64_t heads = job.model.num_heads / shape.tp;
  const int64_t key_heads = std::max<int64_t>(1, job.model.num_kv_heads / shape.tp);
  repeats_keys_ = heads != key_heads;
  has_one_head_ = heads == 1;
  has_one_key_head_ = key_heads == 1;
  if (!is_flash_) {
    saved_ = s_.score * s_.element;
    return;
  }
  saved_ = s_.tokens * static_cast<double>(heads) * 4;
  constexpr double kLanes = 16;  // of 512 bits
  const double width = round_up(static_cast<double>(job.model.head_size), kLanes);
  const double positions = round_up(static_cast<double>(job.sequence_length), kBlock);
  scratch_forward_ = 4 * forward_scratch(width);
  scratch_backward_ = 4 * backward_scratch(positions, width);
}

void AttentionPassTape::forward(Tape& tape, bool keeps_both) const {
  if (is_flash_) {
    tape.take(s_.query + saved_);
    tape.touch(scratch_forward_);
  } else {
    scores_forward(tape);
  }
  if (!copies_batch_) return;
  keeps_both ? tape.take(s_.query) : tape.replace(s_.query);
}

void AttentionPassTape::backward(Tape& tape) const {
  if (!is_flash_) return scores_backward(tape);
  tape.take(s_.qkv);
  tape.touch(scratch_backward_);
}

// Scores, masked; soft-max in 32 bit; times the values, with heads before positions and then the other way round.
void AttentionPassTape::scores_forward(Tape& tape) const {
  const double values = repeats_keys_ || copies_batch_ ? s_.query : 0;
  const double operands = (copies_batch_ ? s_.query : 0) + values;
  const double scores = s_.score * s_.element, wide_scores = s_.score * 4;
  tape.take(scores);
  tape.touch(operands);
  tape.touch(2 * s_.mask);
  tape.take(s_.mask);
  tape.touch(s_.is_narrow ? 2 * wide_scores : wide_scores);
  tape.take(saved_);
  if (s_.is_narrow) tape.touch(wide_scores);
  tape.take(s_.query);
  tape.touch(values + (has_one_head_ ? 0 : s_.query));
  tape.free(scores + s_.mask);
}

void AttentionPassTape::scores_backward(Tape& tape) const {
  const double start = tape.live();
  const double keys = repeats_keys_ || copies_batch_ ? s_.query : 0;
  const double scores = s_.score * s_.element, wide_scores = s_.score * 4;
  tape.take(s_.query);  // values' gradients, a head each
  tape.touch(scores + keys);
  tape.take(scores + (s_.is_narrow ? 2 * wide_scores : 0));
  // p · (dp − Σ p · dp) · scale, operator by operator; of 32-bit scores the last one stays.
  tape.touch(4 * wide_scores + (s_.is_narrow ? scores : 0));
  tape.take(scores);
  tape.touch(s_.query + keys);
  tape.take(2 * s_.query);  // of queries and keys
  if (copies_batch_) tape.touch(s_.query);
  tape.take(has_one_head_ ? 0 : s_.query);
  for (int i = 0; i < 2; ++i) to_key_heads(tape);
  tape.free(tape.live() - start - s_.qkv);
}

// From a gradient for each head to one for each key-value head, in the order of the inputs.
void AttentionPassTape::to_key_heads(Tape& tape) const {
  if (repeats_keys_) {
    tape.take(s_.key);
    if (!has_one_key_head_) tape.replace(s_.key);
  } else if (!has_one_head_) {
    tape.take(s_.key);
  }
}

}  // namespace layline::memory
