#include "layline/cost/measured_layer.h"

#include <algorithm>
#include <cmath>

#include "layline/memory/parameters.h"
#include "layline/spec/measured_names.h"

namespace layline::cost {
namespace {

namespace m = spec::measured;

struct Sizes {
  double sequences, tokens, hidden, query, kv, ffn, heads;
  double hidden_elements;  // of the residual stream on this rank
};

Sizes sizes_of(const spec::Job& job, const memory::LayerShape& shape) {
  const double t = static_cast<double>(shape.tp);
  const double tokens = static_cast<double>(shape.mb) * static_cast<double>(job.sequence_length);
  const double hidden = static_cast<double>(job.model.hidden);
  return {static_cast<double>(shape.mb),
          tokens,
          hidden,
          static_cast<double>(job.model.attention_width()) / t,
          memory::kv_width_per_rank(job.model, shape.tp),
          static_cast<double>(job.model.ffn_hidden) / t,
          static_cast<double>(job.model.num_heads) / t,
          tokens * hidden / (shape.sp ? t : 1)};
}

struct Linear {
  double inputs, outputs;
};

std::array<Linear, 4> linears_of(const Sizes& z) {
  return {{{z.hidden, z.query + 2 * z.kv}, {z.query, z.hidden}, {z.hidden, 2 * z.ffn}, {z.ffn, z.hidden}}};
}

double products(const Measured& measured, std::string_view what, const Sizes& z) {
  double seconds = 0;
  for (const Linear& linear : linears_of(z)) {
    seconds += measured.seconds(what, {z.tokens, linear.inputs, linear.outputs});
  }
  return seconds;
}

struct Attention {
  double forward, backward;
};

Attention attention_of(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape,
                       const Sizes& z) {
  const bool unfused = shape.attention == layout::AttentionKernel::kUnfused;
  const double heads = z.sequences * z.heads, tokens = static_cast<double>(job.sequence_length);
  const double head_size = static_cast<double>(job.model.head_size) / m::kHeadSize;
  return {head_size * measured.seconds(unfused ? m::kUnfusedForward : m::kAttentionForward, {heads, tokens}),
          head_size * measured.seconds(unfused ? m::kUnfusedBackward : m::kAttentionBackward, {heads, tokens})};
}

double hidden_collective(const Measured& measured, std::string_view what, const memory::LayerShape& shape,
                         const Sizes& z) {
  return measured.collective(what, measured.precision(), shape.tp, z.tokens * z.hidden * measured.element_bytes());
}

// What a pass of a layer that a group shares waits for: two sums of the hidden states; with sequence parallelism
// gathers and scatters, and the inputs of column parallel layers are gathered once more for the gradients of the
// weights. What such layers took beyond their kernels and collectives, when they were measured whole, is that ranks
// come late to each other. `compute`: the pass's kernels.
double tensor_parallel(const Measured& measured, const memory::LayerShape& shape, const Sizes& z, bool is_forward,
                       double compute) {
  if (shape.tp <= 1) return 0;
  const spec::Coefficients& k = measured.k();
  const double gathers = shape.sp ? (is_forward ? 2 : 4) : 0, sums = 2;
  double collectives = sums * hidden_collective(measured, shape.sp ? m::kReduceScatter : m::kAllReduce, shape, z);
  if (shape.sp) collectives += gathers * hidden_collective(measured, m::kAllGather, shape, z);
  const double calls = (gathers + sums) * k.measured_collective_seconds;
  const double plain = (collectives - calls) / k.measured_collective_scale;
  const std::string_view forward = shape.sp ? m::kSequenceForwardFactor : m::kSplitForwardFactor;
  const std::string_view backward = shape.sp ? m::kSequenceBackwardFactor : m::kSplitBackwardFactor;
  const double factor = measured.factor(is_forward ? forward : backward, shape.tp, z.hidden, z.tokens);
  const double late = (factor - 1) * (compute / k.measured_compute_scale + plain);
  return std::max(0.0, plain + late) * k.measured_collective_scale + calls;
}

double norm_seconds(const Measured& measured, const memory::LayerShape& shape, const Sizes& z) {
  const bool unfused = shape.norm == layout::NormKernel::kUnfused;
  return measured.seconds(unfused ? m::kUnfusedNorm : m::kNorm, {z.hidden_elements});
}

double norm_backward_seconds(const Measured& measured, const memory::LayerShape& shape, const Sizes& z) {
  const bool unfused = shape.norm == layout::NormKernel::kUnfused;
  return measured.seconds(unfused ? m::kUnfusedNormBackward : m::kNormBackward, {z.hidden_elements});
}

double forward_kernels(const Measured& measured, const memory::LayerShape& shape, const Sizes& z) {
  return 2 * norm_seconds(measured, shape, z) + 2 * measured.seconds(m::kAdd, {z.hidden_elements}) +
         measured.seconds(m::kRope, {z.tokens * z.query}) + measured.seconds(m::kRope, {z.tokens * z.kv}) +
         measured.seconds(m::kCopy, {z.tokens * z.query}) + measured.seconds(m::kSwiglu, {z.tokens * z.ffn});
}

double backward_kernels(const Measured& measured, const memory::LayerShape& shape, const Sizes& z) {
  return 2 * norm_backward_seconds(measured, shape, z) + 2 * measured.seconds(m::kAdd, {z.hidden_elements}) +
         measured.seconds(m::kRope, {z.tokens * z.query}) + measured.seconds(m::kRope, {z.tokens * z.kv}) +
         measured.seconds(m::kCopy, {z.tokens * z.query}) + 2 * measured.seconds(m::kCopy, {z.tokens * z.kv}) +
         measured.seconds(m::kSwigluBackward, {z.tokens * z.ffn});
}

// Kernels take longer among others than alone. Layers were measured whole: one that tp divides is like a narrower one
// with as much work.
double factor_of(const Measured& measured, std::string_view what, const memory::LayerShape& shape, const Sizes& z) {
  return measured.factor(what, z.hidden / std::sqrt(static_cast<double>(shape.tp)), z.tokens);
}

}  // namespace

LayerCost measured_layer_cost(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape) {
  const Sizes z = sizes_of(job, shape);
  const Attention attention = attention_of(job, measured, shape, z);
  const double weight_gradient = products(measured, m::kProductWeight, z);
  LayerCost cost;
  cost.forward.gemm = products(measured, m::kProductForward, z);
  cost.forward.attention = attention.forward;
  cost.forward.memory_bound = forward_kernels(measured, shape, z);
  cost.backward.gemm = products(measured, m::kProductInput, z) + weight_gradient;
  cost.backward.attention = attention.backward;
  cost.backward.memory_bound = backward_kernels(measured, shape, z);
  const double backward_factor = factor_of(measured, m::kBackwardFactor, shape, z);
  cost.forward = cost.forward * factor_of(measured, m::kForwardFactor, shape, z);
  cost.backward = cost.backward * backward_factor;
  cost.forward.tensor_parallel = tensor_parallel(measured, shape, z, /*is_forward=*/true, cost.forward.total());
  cost.backward.tensor_parallel = tensor_parallel(measured, shape, z, /*is_forward=*/false, cost.backward.total());
  cost.weight_gradient = weight_gradient * backward_factor;
  if (shape.checkpointing == layout::Checkpointing::kFull) {
    cost.recompute = cost.forward;
  } else if (shape.checkpointing == layout::Checkpointing::kSelective) {
    cost.recompute.attention = attention.forward;
    cost.recompute.memory_bound =
        2 * norm_seconds(measured, shape, z) + measured.seconds(m::kCopy, {z.tokens * z.query});
  }
  cost.recompute = cost.recompute * measured.k().measured_recompute_scale;
  return cost;
}

EndCost measured_embedding_cost(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape) {
  const Sizes z = sizes_of(job, shape);
  EndCost cost;
  cost.forward.memory_bound = measured.seconds(m::kReadRows, {z.tokens * z.hidden});
  cost.backward.memory_bound = measured.seconds(m::kAddToRows, {z.tokens * z.hidden});
  if (shape.tp <= 1) return cost;
  cost.forward.tensor_parallel = hidden_collective(measured, shape.sp ? m::kReduceScatter : m::kAllReduce, shape, z);
  if (shape.sp) cost.backward.tensor_parallel = hidden_collective(measured, m::kAllGather, shape, z);
  return cost;
}

// The gradient of the head is computed in the forward pass, chunk by chunk.
EndCost measured_head_cost(const spec::Job& job, const Measured& measured, const memory::LayerShape& shape) {
  const Sizes z = sizes_of(job, shape);
  const double vocab = memory::padded_vocab(job.model, shape.tp) / static_cast<double>(shape.tp);
  EndCost cost;
  cost.forward.gemm = measured.seconds(m::kProductForward, {z.tokens, z.hidden, vocab}) +
                      measured.seconds(m::kProductInput, {z.tokens, z.hidden, vocab}) +
                      measured.seconds(m::kProductWeight, {z.tokens, z.hidden, vocab});
  cost.forward.memory_bound = norm_seconds(measured, shape, z) + measured.seconds(m::kCrossEntropy, {z.tokens * vocab});
  cost.backward.memory_bound = norm_backward_seconds(measured, shape, z);
  if (shape.tp <= 1) return cost;
  const auto numbers = [&](double bytes) {
    return measured.collective(m::kAllReduce, spec::Precision::kFp32, shape.tp, bytes);
  };
  cost.forward.tensor_parallel = numbers(4 * z.tokens) + numbers(8 * z.tokens) +
                                 hidden_collective(measured, shape.sp ? m::kReduceScatter : m::kAllReduce, shape, z);
  if (shape.sp) cost.forward.tensor_parallel += hidden_collective(measured, m::kAllGather, shape, z);
  return cost;
}

double measured_data_parallel_seconds(const spec::Job& job, const Measured& measured, const layout::Layout& layout,
                                      double parameters, double layers) {
  if (layout.dp <= 1) return 0;
  const double buckets = std::max(1.0, layers);
  const auto one = [&](std::string_view what, spec::Precision precision, double element_bytes) {
    return buckets * measured.collective(what, precision, layout.dp, parameters / buckets * element_bytes);
  };
  if (layout.zero == 0) return one(m::kAllReduce, spec::Precision::kFp32, job.engine.reduction_bytes);
  return one(m::kReduceScatter, spec::Precision::kFp32, job.engine.reduction_bytes) +
         one(m::kAllGather, measured.precision(), measured.element_bytes());
}

double measured_optimizer_seconds(const Measured& measured, double parameters, double shard) {
  return measured.seconds(m::kZero, {parameters}) + measured.seconds(m::kSumOfSquares, {parameters / shard}) +
         measured.seconds(m::kAdamw, {parameters / shard});
}

}  // namespace layline::cost
