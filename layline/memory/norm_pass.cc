#include "layline/memory/norm_pass.h"

#include <algorithm>
#include <cmath>

namespace layline::memory {

namespace {

// The fused kernel sums the weight's gradient over so many parts of the rows at most, of so many rows at least.
constexpr double kMostParts = 32, kSmallestPart = 16;

double fused_parts(const OperatorSizes& s) {
  const double rows = std::max(kSmallestPart, std::ceil(s.part_tokens / kMostParts));
  return std::ceil(s.part_tokens / rows) * s.hidden_units * 4;
}

}  // namespace

double NormPassTape::kept() const {
  if (is_fused_) return s_.row;
  if (is_rebuilt_) return 0;
  return (s_.is_narrow ? s_.wide : 0) + s_.row + s_.hidden;
}

void NormPassTape::forward(Tape& tape, bool is_recorded) const {
  if (!is_fused_) return composed_forward(tape, is_recorded && !is_rebuilt_);
  tape.take(s_.hidden);
  tape.take(s_.row);
  if (!is_recorded) tape.free(s_.row);
}

void NormPassTape::rebuild(Tape& tape) const {
  if (is_fused_) return tape.take(s_.hidden);
  composed_forward(tape, /*is_recorded=*/false);
}

// x in 32 bit, x², its mean, x / √(mean + ε), in the activations' type, times the weight.
void NormPassTape::composed_forward(Tape& tape, bool is_recorded) const {
  const double copy = s_.is_narrow ? s_.wide : 0;
  tape.take(copy);
  tape.take(s_.wide);
  tape.take(s_.row);
  tape.free(s_.wide);
  tape.take(2 * s_.row);
  tape.take(s_.wide);
  if (s_.is_narrow) tape.take(s_.hidden);
  tape.take(s_.hidden);
  tape.free(2 * s_.row + copy);
  if (!is_recorded) tape.free(copy + s_.row + s_.hidden);
}

void NormPassTape::add_up(Tape& tape, Sum sum) const {
  if (sum == Sum::kAlone) return;
  if (sum == Sum::kInNewTensor) return tape.replace(s_.hidden);
  tape.free(s_.hidden);
}

void NormPassTape::backward(Tape& tape, Sum sum, bool frees_input) const {
  if (is_fused_) {
    tape.take(s_.hidden);
    tape.touch(fused_parts(s_));
    tape.free(s_.row + s_.hidden);
    if (frees_input) tape.free(s_.hidden);
    return add_up(tape, sum);
  }
  if (!is_rebuilt_) {
    composed_backward(tape, sum, /*frees_gradient=*/true);
    if (frees_input && keeps_input()) tape.free(s_.hidden);
    return;
  }
  composed_forward(tape, /*is_recorded=*/true);
  tape.free(s_.hidden);
  composed_backward(tape, Sum::kAlone, /*frees_gradient=*/false);
  tape.free(s_.hidden);
  if (frees_input) tape.free(s_.hidden);
  add_up(tape, sum);
}

void NormPassTape::composed_backward(Tape& tape, Sum sum, bool frees_gradient) const {
  // Times the weight, with the weight's gradient.
  if (s_.is_narrow) tape.take(2 * s_.wide);
  tape.take(s_.wide);
  if (s_.is_narrow) tape.free(2 * s_.wide);
  tape.take(s_.hidden);
  tape.free(s_.wide + s_.hidden);
  if (frees_gradient) tape.free(s_.hidden);
  if (s_.is_narrow) {
    tape.take(s_.wide);
    tape.free(s_.hidden);
  }
  // x times its statistic: a gradient for each.
  tape.take(2 * s_.wide);
  tape.free(2 * s_.wide);
  if (!s_.is_narrow) {
    add_up(tape, sum);
    if (sum == Sum::kInNewTensor) sum = Sum::kInPlace;
  }
  // The mean, and the square: 2 · x^1 · gradient.
  tape.take(s_.wide);
  tape.take(3 * s_.wide);
  tape.free(3 * s_.wide);
  tape.free(s_.row);
  if (!s_.is_narrow) return add_up(tape, sum == Sum::kAlone ? Sum::kInPlace : sum);
  tape.free(2 * s_.wide);
  tape.take(s_.hidden);
  tape.free(s_.wide);
  add_up(tape, sum);
}

}  // namespace layline::memory
