// How a training framework behaves, as data: what it keeps, what it sends, what it overlaps, and which axes, schedules
// and kernels it has. The planner searches only what the engine has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layline/spec/types.h"

namespace layline::spec {

// How gradients are made equal over the data-parallel ranks.
enum class GradientReduction { kAllReduce, kReduceScatter };
// Where the head's logits live: sharded over tp in the vocabulary, or gathered on every tp rank.
enum class Logits { kVocabParallel, kGathered };
// How the planner knows what is live beside what is kept for the backward pass: as a share of a layer (a coefficient,
// M7), or by following the operators of a layer one by one (M14 to M17).
enum class WorkingSet { kShareOfLayer, kOperators };

struct Engine {
  std::string name;  // "aleph-scaling"
  std::string title;
  std::string source;                          // public code that behaves so
  std::map<std::string, std::string> sources;  // key of the spec file → where its value is from, if not from `source`

  // What a rank keeps for each parameter, bytes.
  double weight_bytes = 2;          // the weights that compute uses
  double gradient_bytes = 2;        // the buffer gradients accumulate in over micro-batches
  double local_gradient_bytes = 0;  // a second, low-precision copy from the backward pass that lives on (nanotron)
  double bf16_gradient_bytes = 0;   // more of them in bf16, where gradients accumulate in fp32 beside (BF16Optimizer)
  double optimizer_bytes = 12;      // fp32 master, two moments; divided by dp from ZeRO-1 on

  // Activations kept from forward to backward, counted tensor by tensor: bytes a token and layer, for each hidden unit
  // (replicated over tp unless sequence parallel), and for each unit of what tp divides.
  double hidden_activation_bytes = 12;        // residual stream, norm inputs and outputs, with the fused norm
  double dropout_activation_bytes = 0;        // more of them for the GPT kind, which trains with dropout: its masks
  double unfused_norm_activation_bytes = 14;  // more of them when norms are unfused, per hidden unit
  double attention_activation_bytes = 4;      // per unit of n·d: queries and attention output
  double kv_activation_bytes = 2;             // per unit of 2·k·d: keys and values
  double ffn_activation_bytes = 8;            // per unit of f, gated (SwiGLU): gate, up, activation, product
  double plain_ffn_activation_bytes = 4;      // the same without a gate: before and after the activation function
  double unfused_score_bytes = 8;             // per score (n·s a token), plain attention
  double fused_softmax_score_bytes = 4;       // per score, fused scaled-masked softmax
  double checkpoint_bytes = 2;                // per hidden unit: the input kept for each recomputed layer
  bool checkpoint_shards_with_sp = true;      // the kept input is divided by tp under sequence parallelism

  double launch_ahead_layers = 0;  // layers whose gathered inputs stay allocated while the host runs ahead (nanotron)
  double step_bytes = 4;           // temporaries of the optimizer step for each (sharded) parameter

  // Data parallelism.
  GradientReduction reduction =
      GradientReduction::kAllReduce;         // for ZeRO-1; ZeRO-0 always all-reduces, ZeRO ≥ 2 scatters
  double reduction_bytes = 4;                // bytes an element on the wire
  double parameter_gather_bytes = 2;         // bytes an element of the ZeRO-1 parameter all-gather
  bool overlaps_gradient_reduction = false;  // with the last backward pass
  bool overlaps_parameter_gather = false;    // with the first forward pass
  double bucket_elements = 0;                // size of the reduction buffer, 0: none beyond the gradients themselves
  double bucket_bytes = 4;                   // bytes an element of that buffer
  bool reshard_after_forward = true;         // ZeRO-3: gather again in the backward pass

  // What is followed operator by operator: all of a step's moments, in the order in which the engine's lists run.
  WorkingSet working_set = WorkingSet::kShareOfLayer;
  double bucket_alignment_bytes = 1;   // parameters start at multiples of it; buckets are multiples of dp times it long
  double logits_chunk_elements = 0;    // logits that are there at one time
  double smallest_logits_chunk = 1;    // tokens of them at least
  double reduction_direct_bytes = 0;   // reductions up to so long come whole from every rank …
  double reduction_segment_bytes = 0;  // … others in segments
  double reduction_window = 0;         // segments that a rank receives at one time; 0: reductions need no scratch

  // Head and loss.
  Logits logits = Logits::kVocabParallel;
  double logits_live_bytes = 8;      // live at the peak of the loss, bytes a token and vocabulary entry
  double logits_traffic_bytes = 20;  // moved through memory, bytes a token and vocabulary entry, both passes

  // Tensor and sequence parallelism.
  bool sequence_parallel_always = false;  // tp implies sp (nanotron's reduce-scatter mode)
  bool overlaps_tensor_parallel = false;  // collectives hidden behind GEMMs (TransformerEngine userbuffers)

  // Pipeline.
  SplitKind default_split = SplitKind::kEven;
  bool overlaps_p2p = false;        // sends and receives run beside compute
  bool frees_sent_outputs = false;  // output deallocation after send
  bool interleaved_needs_multiple_of_pp = true;

  // Kernels.
  AttentionKernel default_attention = AttentionKernel::kFlash2;
  NormKernel default_norm = NormKernel::kFused;
  bool selective_recomputes_norms = false;

  // What is not the job's own.
  double context_bytes = 0;     // outside the allocator: CUDA context, NCCL
  double reserve_fraction = 0;  // allocator cache beyond what is allocated

  // What the engine has at all.
  bool rank_order_tp_cp_dp_pp = true;  // tp fastest, then cp, dp, pp slowest; false: dp slowest (tp, cp, pp, dp)
  std::vector<int> zero_stages = {0, 1};
  bool has_context_parallel = false;
  bool has_sequence_parallel = true;
  bool has_tensor_parallel = true;
  bool has_pipeline_parallel = true;
  bool has_virtual_stages = false;
  bool has_hybrid_sharding = false;
  std::vector<ScheduleKind> schedules = {ScheduleKind::kOneFOneB};
  std::vector<Checkpointing> checkpointing = {Checkpointing::kNone, Checkpointing::kFull};
  bool has_partial_checkpointing = false;  // ckpt=full:K
  std::vector<AttentionKernel> attention_kernels = {AttentionKernel::kFlash2};
  std::vector<NormKernel> norm_kernels = {NormKernel::kFused};
  std::vector<SplitKind> splits = {SplitKind::kEven};
  std::vector<Precision> precisions = {Precision::kBf16};
};

}  // namespace layline::spec
