// Rules that keep a distributed run right, and ways to break each of them for tests: a suite that stays green when one
// is broken proves nothing. In normal builds mutated() is constantly false and costs nothing; the test build of the
// trainer (LAYLINE_MUTATIONS) asks a switch.
#pragma once

#ifdef LAYLINE_MUTATIONS
#include <atomic>
#endif

namespace layline::trainer::model {

enum class Mutation {
  kNone,
  kSeedByRank,             // weights drawn from the rank instead of (seed, name)
  kMeanPerMicroBatch,      // loss averaged over a micro-batch's tokens instead of the global batch's
  kMeanPerReplica,         // … over a data-parallel replica's tokens
  kBf16Accumulation,       // gradients of micro-batches accumulated in bf16
  kCountReplicated,        // tp-replicated parameters counted tp times in the norm
  kCountTiedTwice,         // both copies of a tied weight counted in the norm
  kNoClip,                 // clipping does nothing
  kSkipPartialSum,         // norms' gradients under sequence parallelism not summed over tp
  kSkipReplicaSum,         // replicated key-value heads' gradients not summed over their replicas
  kSkipTiedSum,            // tied embedding's gradients not summed over its stages
  kSkipColumnInputSum,     // a column-parallel layer's input gradient not summed over tp
  kDoubleRowSum,           // a row-parallel layer's output counted tp times
  kReinitializeGradients,  // gradients zeroed between micro-batches
  kSkipPaddingMask,        // padded vocabulary columns take part in the soft-max
  kDropRemainderLayers,    // layers that do not divide are dropped from the last stage
  kSkipLastMicroBatch,     // the last micro-batch's backward pass is left out
  kSkipGradientReduction,  // gradients not summed over dp
  kForgetMoments,          // resuming begins with new moments
  kForgetSteps,            // … with the learning rate and the bias corrections of step 1
  kForgetDataPosition,     // … with the first sample
  kLateCopy,               // a save copies the state while training goes on
  kSaveReplicas,           // what replicas hold alike is saved by each of them
  kCount,
};

#ifdef LAYLINE_MUTATIONS
inline std::atomic<Mutation>& mutation_switch() {
  static std::atomic<Mutation> value{Mutation::kNone};
  return value;
}
inline void set_mutation(Mutation mutation) { mutation_switch() = mutation; }
inline bool mutated(Mutation mutation) { return mutation_switch() == mutation; }
#else
constexpr bool mutated(Mutation) { return false; }
#endif

}  // namespace layline::trainer::model
