// Seconds of scaled dot-product attention by kernel (docs/model.md, C6 and C7), and of what context parallelism sends
// for it (C8).
#pragma once

#include "layline/cost/machine.h"
#include "layline/memory/activations.h"
#include "layline/spec/job.h"

namespace layline::cost {

struct AttentionSeconds {
  double forward = 0;
  double backward = 0;
  double exchange_forward = 0;  // keys and values around the cp ring that compute does not hide
  double exchange_backward = 0;
};

AttentionSeconds attention_seconds(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape);

}  // namespace layline::cost
