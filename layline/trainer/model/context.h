// What every operator of a rank's model needs to know of the run.
#pragma once

#include <ATen/core/Tensor.h>

#include "layline/layout/layout.h"
#include "layline/trainer/comm/group.h"
#include "layline/trainer/kernels/rope.h"
#include "layline/trainer/model/autograd.h"

namespace layline::trainer::model {

struct Context {
  comm::Group* tp = nullptr;  // of one rank when there is no tensor parallelism
  bool sequence_parallel = false;
  layout::AttentionKernel attention = layout::AttentionKernel::kFlash2;
  layout::NormKernel norm = layout::NormKernel::kFused;
  bool recomputes_attention_and_norms = false;  // ckpt=selective
  int64_t head_size = 0;
  double norm_epsilon = 1e-5;
  kernels::RopeTable rope;
  WeightGradients weight_gradients;

  int64_t tp_size() const { return tp->size(); }
  bool shards_sequence() const { return sequence_parallel && tp->size() > 1; }
};

}  // namespace layline::trainer::model
