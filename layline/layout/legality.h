// Whether a layout can run at all for a job, and if not, which number does not divide which. Illegal layouts are
// values: searches meet thousands of them.
//
//   if (!is_legal(layout, job)) …                  // no strings, no allocation: made to be called millions of times
//   std::string why = legality(layout, job).reason;  // "tp 3 does not divide 40 heads"
//
// Memory is not looked at here. Tensor parallelism across nodes, and more stages than micro-batches, are legal.
#pragma once

#include <cstdint>
#include <string>

#include "layline/layout/layout.h"
#include "layline/spec/job.h"

namespace layline::layout {

// What a layout may break, in the order in which rules are looked at. kNone: nothing, it is legal.
enum class Rule {
  kNone,
  kAxisRange,               // every axis and the micro-batch are at least 1 and at most kMaxAxis
  kWorldSize,               // dp·tp·pp·cp is the number of GPUs
  kExperts,                 // ep 1: dense models only
  kTensorParallel,          // the engine has it
  kHeads,                   // tp divides the attention heads
  kKeyValueHeads,           // tp divides the key-value heads, or they divide tp and are replicated
  kFeedForward,             // tp divides the feed-forward width
  kContextParallel,         // the engine has it
  kContextSequence,         // 2·cp divides the sequence: each rank takes a chunk from both ends (causal balance)
  kSequenceParallel,        // the engine has it
  kSequenceParallelAlways,  // the engine cannot do tp without it
  kSequenceShards,          // tp divides a cp rank's part of the sequence
  kPipelineParallel,        // the engine has it
  kVirtualStages,           // the engine has them
  kVirtualWithoutPipeline,  // vp > 1 needs pp > 1
  kSchedule,                // the engine has it
  kVirtualSchedule,         // only interleaved runs several chunks a rank
  kInterleavedOneChunk,     // interleaved needs vp > 1
  kMicroBatches,            // dp·mb divides the global batch
  kInterleavedMultiple,     // micro-batches are a multiple of pp, where the engine wants it
  kSplit,                   // the engine has it
  kTooFewLayers,            // every virtual stage has a layer
  kUniformEnds,             // also after the uniform split counted embedding, norm and head as layers
  kExplicitCount,           // an explicit split has a count for each virtual stage
  kExplicitLayers,          // that are at least 1 and add up to the model's layers
  kZero,                    // the engine has the ZeRO stage
  kHybridSharding,          // the engine has it
  kHybridZero,              // hsdp goes with ZeRO-3
  kHybridGroups,            // hsdp divides dp
  kCheckpointing,           // the engine has it
  kPartialCheckpointing,    // the engine has ckpt=full:K
  kAttention,               // the engine has the kernel
  kNorm,                    // the engine has the kernel
};

// The first rule that the layout breaks, kNone when it is legal. The job must have passed spec::check_job.
Rule first_broken_rule(const Layout& layout, const spec::Job& job);

inline bool is_legal(const Layout& layout, const spec::Job& job) {
  return first_broken_rule(layout, job) == Rule::kNone;
}

struct Legality {
  bool legal = true;
  Rule rule = Rule::kNone;
  std::string reason;  // "" when legal; else one sentence with the numbers
};

Legality legality(const Layout& layout, const spec::Job& job);

// Micro-batches a step on each data-parallel replica, of a legal layout.
inline int64_t num_micro_batches(const Layout& layout, const spec::Job& job) {
  return job.global_batch / (layout.dp * layout.mb);
}

}  // namespace layline::layout
