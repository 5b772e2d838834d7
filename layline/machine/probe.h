// The layers that are measured whole, to learn what they take beyond their kernels.
#pragma once

#include <cstdint>

#include "layline/spec/model.h"

namespace layline::machine {

inline constexpr int64_t kProbeSequence = 64;  // tokens of a sequence; there are as many sequences as are wanted

// Of so many layers, run one after the other, that weights and gradients come from memory, as in training.
spec::Model probe_model(int64_t hidden);

}  // namespace layline::machine
