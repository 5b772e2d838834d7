// The tensors of a root-mean-square norm: one kernel, or composed of elementwise operators (M14 of docs/model.md).
#pragma once

#include "layline/memory/layer_passes.h"
#include "layline/memory/tape.h"
#include "layline/spec/types.h"

namespace layline::memory {

class NormPassTape {
 public:
  // is_rebuilt: the output is not kept; it is made again in the backward pass (selective recomputation).
  NormPassTape(const OperatorSizes& sizes, spec::NormKernel kernel, bool is_rebuilt)
      : s_(sizes), is_fused_(kernel == spec::NormKernel::kFused), is_rebuilt_(is_rebuilt) {}

  // What is kept beside input and output, and whether the input is.
  double kept() const;
  bool keeps_input() const { return is_fused_ || is_rebuilt_ || !s_.is_narrow; }

  // Live after: the output, and kept() where the pass is recorded.
  void forward(Tape& tape, bool is_recorded) const;
  // The output once more.
  void rebuild(Tape& tape) const;

  // How the input's gradient meets another one of the input's: not, added to it in place, or in a new tensor, since
  // somebody else holds the other one.
  enum class Sum { kAlone, kInPlace, kInNewTensor };
  // Live before: kept(), the output's gradient, the other one; after: the sum, and the other one where it is held.
  void backward(Tape& tape, Sum sum, bool frees_input) const;

 private:
  void composed_forward(Tape& tape, bool is_recorded) const;
  void composed_backward(Tape& tape, Sum sum, bool frees_gradient) const;
  void add_up(Tape& tape, Sum sum) const;

  const OperatorSizes& s_;
  bool is_fused_, is_rebuilt_;
};

}  // namespace layline::memory
