#include "layline/cost/layer.h"

#include <algorithm>
#include <cmath>

#include "layline/cost/attention.h"
#include "layline/cost/collective.h"
#include "layline/cost/gemm.h"
#include "layline/cost/measured_layer.h"
#include "layline/cost/tensor_parallel.h"
#include "layline/memory/parameters.h"

namespace layline::cost {
namespace {

struct Sizes {
  double tokens, hidden, query, kv, ffn, tp, hidden_share;
};

Sizes sizes_of(const spec::Job& job, const memory::LayerShape& shape) {
  const double t = static_cast<double>(shape.tp);
  return {static_cast<double>(shape.mb) * static_cast<double>(job.sequence_length) / static_cast<double>(shape.cp),
          static_cast<double>(job.model.hidden),
          static_cast<double>(job.model.attention_width()) / t,
          memory::kv_width_per_rank(job.model, shape.tp),
          static_cast<double>(job.model.ffn_hidden) / t,
          t,
          shape.sp ? t : 1};
}

double forward_gemms(const spec::Job& job, const Machine& machine, const Sizes& z) {
  const double up = static_cast<double>(job.model.num_mlp_matrices() - 1);
  return linear_forward_seconds(machine, z.tokens, z.hidden, z.query + 2 * z.kv) +
         linear_forward_seconds(machine, z.tokens, z.query, z.hidden) +
         linear_forward_seconds(machine, z.tokens, z.hidden, up * z.ffn) +
         linear_forward_seconds(machine, z.tokens, z.ffn, z.hidden);
}

double backward_gemms(const spec::Job& job, const Machine& machine, const Sizes& z) {
  const double up = static_cast<double>(job.model.num_mlp_matrices() - 1);
  return linear_backward_seconds(machine, z.tokens, z.hidden, z.query + 2 * z.kv) +
         linear_backward_seconds(machine, z.tokens, z.query, z.hidden) +
         linear_backward_seconds(machine, z.tokens, z.hidden, up * z.ffn) +
         linear_backward_seconds(machine, z.tokens, z.ffn, z.hidden);
}

// Norms, residual stream, activation function and rope of both passes; a third of it is forward.
double pointwise_seconds(const Machine& machine, const memory::LayerShape& shape, const Sizes& z) {
  const double norm =
      shape.norm == layout::NormKernel::kFused ? machine.k.fused_norm_traffic : machine.k.unfused_norm_traffic;
  const double bytes = (norm + machine.k.residual_traffic) * z.hidden / z.hidden_share + machine.k.ffn_traffic * z.ffn +
                       machine.k.attention_width_traffic * z.query;
  return z.tokens * bytes / machine.memory_bytes_per_second;
}

// The time that the host and the slowest collective handshakes need for one pass of a layer, however little the GPU
// does.
double floor_seconds(const Machine& machine, const memory::LayerShape& shape) {
  const spec::Coefficients& k = machine.k;
  const double t = static_cast<double>(shape.tp);
  double seconds = k.layer_floor_seconds * (1 + k.floor_tp_growth * (t - 1));
  seconds += k.tp_hop_seconds * std::max(0.0, t - static_cast<double>(machine.gpus_per_node));
  if (shape.pipeline_across_nodes && shape.tp > 1) seconds += k.pipelined_floor_seconds * t;
  return seconds;
}

// Raises `launch` so that the pass takes at least its floor: a smooth maximum, since GPU and host jitter.
void apply_floor(PassSeconds& pass, double floor) {
  const double busy = pass.total();
  constexpr double kSharpness = 6;
  const double larger = std::max(busy, floor);
  const double ratio = std::min(busy, floor) / larger;
  pass.launch += larger * std::pow(1 + std::pow(ratio, kSharpness), 1 / kSharpness) - busy;
}

}  // namespace

PassSeconds& PassSeconds::operator+=(const PassSeconds& other) {
  gemm += other.gemm;
  attention += other.attention;
  memory_bound += other.memory_bound;
  launch += other.launch;
  tensor_parallel += other.tensor_parallel;
  context_parallel += other.context_parallel;
  return *this;
}

PassSeconds PassSeconds::operator*(double factor) const {
  return {gemm * factor,   attention * factor,       memory_bound * factor,
          launch * factor, tensor_parallel * factor, context_parallel * factor};
}

LayerCost layer_cost(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape) {
  if (machine.measured) return measured_layer_cost(job, *machine.measured, shape);
  const Sizes z = sizes_of(job, shape);
  const AttentionSeconds attention = attention_seconds(job, machine, shape);
  const double pointwise = pointwise_seconds(machine, shape, z);
  constexpr double kForwardShare = 1.0 / 3;
  const double floor = floor_seconds(machine, shape);
  LayerCost cost;
  cost.forward.gemm = forward_gemms(job, machine, z);
  cost.forward.attention = attention.forward;
  cost.forward.memory_bound = kForwardShare * pointwise;
  cost.forward.launch = machine.k.layer_launch_seconds;
  cost.forward.tensor_parallel = tensor_parallel_seconds(job, machine, shape, Pass::kForward);
  cost.forward.context_parallel = attention.exchange_forward;
  apply_floor(cost.forward, floor);
  cost.backward.gemm = backward_gemms(job, machine, z);
  cost.backward.attention = attention.backward;
  cost.backward.memory_bound = (1 - kForwardShare) * pointwise;
  cost.backward.launch = machine.k.layer_launch_seconds;
  cost.backward.tensor_parallel = tensor_parallel_seconds(job, machine, shape, Pass::kBackward);
  cost.backward.context_parallel = attention.exchange_backward;
  apply_floor(cost.backward, floor);
  cost.weight_gradient = cost.backward.gemm / 2;
  if (shape.checkpointing == layout::Checkpointing::kFull) {
    cost.recompute = cost.forward;
    cost.recompute.launch += machine.k.recompute_layer_seconds;
  } else if (shape.checkpointing == layout::Checkpointing::kSelective) {
    cost.recompute.attention = attention.forward;
    if (job.engine.selective_recomputes_norms) {
      cost.recompute.memory_bound =
          machine.k.fused_norm_traffic / 3 * z.tokens * z.hidden / z.hidden_share / machine.memory_bytes_per_second;
    }
  }
  return cost;
}

EndCost embedding_cost(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape) {
  if (machine.measured) return measured_embedding_cost(job, *machine.measured, shape);
  const Sizes z = sizes_of(job, shape);
  constexpr double kBytes = 8;  // gather and write; read and scatter-add in the backward pass
  EndCost cost;
  cost.forward.memory_bound = kBytes * z.tokens * z.hidden / machine.memory_bytes_per_second;
  cost.backward.memory_bound = cost.forward.memory_bound;
  cost.forward.tensor_parallel = tensor_parallel_seconds(job, machine, shape, Pass::kForward) / 2;
  return cost;
}

EndCost head_cost(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape) {
  if (machine.measured) return measured_head_cost(job, *machine.measured, shape);
  const Sizes z = sizes_of(job, shape);
  const double vocab = memory::padded_vocab(job.model, shape.tp);
  const bool gathered = job.engine.logits == spec::Logits::kGathered;
  const double traffic = z.tokens * (gathered ? vocab : vocab / z.tp) * job.engine.logits_traffic_bytes *
                         machine.k.logits_traffic_scale / machine.memory_bytes_per_second;
  EndCost cost;
  cost.forward.gemm = linear_forward_seconds(machine, z.tokens, z.hidden, vocab / z.tp);
  cost.backward.gemm = linear_backward_seconds(machine, z.tokens, z.hidden, vocab / z.tp);
  cost.forward.memory_bound = traffic / 2;
  cost.backward.memory_bound = traffic / 2;
  if (gathered && shape.tp > 1) {
    const GroupShape group = group_shape(shape.tp, 1, machine.gpus_per_node);
    cost.forward.tensor_parallel =
        all_gather_seconds(machine, group, tensor_parallel_links(machine), z.tokens * vocab * 2);
  }
  return cost;
}

}  // namespace layline::cost
