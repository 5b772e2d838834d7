#include "layline/cost/attention.h"

#include <algorithm>

#include "layline/cost/collective.h"
#include "layline/memory/parameters.h"

namespace layline::cost {
namespace {

struct Problem {
  double scores;      // elements of the full score matrices on this rank
  double full_flops;  // QKᵀ and PV, whole matrix
};

Problem problem_of(const spec::Job& job, const memory::LayerShape& shape) {
  const double s = static_cast<double>(job.sequence_length);
  const double heads = static_cast<double>(job.model.num_heads) / static_cast<double>(shape.tp);
  const double scores = static_cast<double>(shape.mb) * heads * s * s / static_cast<double>(shape.cp);
  return {scores, 4 * scores * static_cast<double>(job.model.head_size)};
}

// FlashAttention skips the masked half; its backward pass does 2.5 times the forward FLOPs (Dao 2023, section 4).
AttentionSeconds flash(const Machine& machine, const Problem& problem, double forward_efficiency,
                       double backward_efficiency) {
  const double causal_flops = problem.full_flops / 2;
  const double peak = machine.attention_flops_per_second;
  return {causal_flops / (peak * forward_efficiency), 2.5 * causal_flops / (peak * backward_efficiency)};
}

// Batched GEMMs over the full matrix and a softmax that reads and writes every score.
AttentionSeconds plain(const Machine& machine, const Problem& problem, double traffic_per_score) {
  const double gemms = problem.full_flops / (machine.attention_flops_per_second * machine.k.gemm_efficiency);
  const double softmax = problem.scores * traffic_per_score / machine.memory_bytes_per_second;
  return {gemms + softmax, 2 * (gemms + softmax)};
}

AttentionSeconds kernel_seconds(const Machine& machine, const Problem& problem, layout::AttentionKernel kernel) {
  const spec::Coefficients& k = machine.k;
  switch (kernel) {
    case layout::AttentionKernel::kFlash2:
      return flash(machine, problem, k.flash2_forward_efficiency, k.flash2_backward_efficiency);
    case layout::AttentionKernel::kFlash1:
      return flash(machine, problem, k.flash1_forward_efficiency, k.flash1_backward_efficiency);
    case layout::AttentionKernel::kFusedSoftmax:
      return plain(machine, problem, k.fused_softmax_score_traffic);
    case layout::AttentionKernel::kUnfused:
      break;
  }
  return plain(machine, problem, k.unfused_score_traffic);
}

}  // namespace

AttentionSeconds attention_seconds(const spec::Job& job, const Machine& machine, const memory::LayerShape& shape) {
  AttentionSeconds seconds = kernel_seconds(machine, problem_of(job, shape), shape.attention);
  if (shape.cp <= 1) return seconds;
  const double cp = static_cast<double>(shape.cp);
  const double tokens = static_cast<double>(shape.mb) * static_cast<double>(job.sequence_length);
  const double bytes = tokens * 2 * memory::kv_width_per_rank(job.model, shape.tp) * 2;
  const GroupShape group = group_shape(shape.cp, shape.tp, machine.gpus_per_node);
  const LinkUse use{machine.k.tp_intra_efficiency, machine.k.tp_inter_efficiency, 0,
                    machine.k.tp_latency_seconds * (cp - 1)};
  const double ring = all_gather_seconds(machine, group, use, bytes);
  seconds.exchange_forward = std::max(0.0, ring - machine.k.cp_overlap * seconds.forward);
  seconds.exchange_backward = std::max(0.0, 2 * ring - machine.k.cp_overlap * seconds.backward);
  return seconds;
}

}  // namespace layline::cost
