// What a rank's time goes to: said by the code that spends it, read once a step.
//
//   const WorkScope work(Work::kAttention);      // until its end, in this thread
//   …
//   const WorkSeconds seconds = take_work_seconds();   // since the last call, by work; adds up to the time that passed
//
// Scopes nest, and the innermost one is charged: a collective inside a matrix product's scope is tensor-parallel time.
// Inside kRecomputation what computes stays recomputation. Entering and leaving costs a look at the clock each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace layline::trainer::tally {

enum class Work : uint8_t {
  kOther,  // reading data, the loss, bookkeeping
  kMatrixMultiplication,
  kAttention,
  kMemoryBound,  // the rest of forward and backward passes: norms, rotary embedding, SwiGLU, sums, autograd
  kRecomputation,
  kTensorParallel,
  kPipeline,  // waiting for other stages
  kDataParallel,
  kOptimizer,
};

// The planner's names, but that what it has as pipeline_send and pipeline_bubble is one wait here.
inline constexpr std::array<std::string_view, 9> kWorkNames = {
    "other",    "matrix_multiplication", "attention", "memory_bound", "recomputation", "tensor_parallel",
    "pipeline", "data_parallel",         "optimizer"};
inline constexpr size_t kNumWorks = kWorkNames.size();

using WorkSeconds = std::array<double, kNumWorks>;

class WorkScope {
 public:
  explicit WorkScope(Work work);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

 private:
  Work outer_;
};

// Of the calling thread since its last call, or since its first scope.
WorkSeconds take_work_seconds();

}  // namespace layline::trainer::tally
