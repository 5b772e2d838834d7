// The price of a layout: seconds of one optimizer step by what they go to (docs/model.md, C17 to C25), and the bytes of
// its fullest stage.
//
// A Pricer belongs to one job and one thread. It remembers the cost of a layer for each LayerShape it has seen, so that
// pricing a layout is a handful of multiplications, whatever the number of micro-batches, stages or ranks.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "layline/cost/layer.h"
#include "layline/cost/machine.h"
#include "layline/layout/layout.h"
#include "layline/memory/stage_groups.h"
#include "layline/memory/stage_memory.h"
#include "layline/spec/job.h"

namespace layline::cost {

enum class Kind {
  kGemm,
  kAttention,
  kMemoryBound,
  kLaunch,
  kRecompute,
  kTensorParallel,
  kContextParallel,
  kPipelineSend,
  kBubble,
  kDataParallel,
  kOptimizer,
  kMemoryPressure,
  kOther,
  kCount
};
inline constexpr size_t kNumKinds = static_cast<size_t>(Kind::kCount);
inline constexpr std::array<std::string_view, kNumKinds> kKindNames = {"matrix_multiplication",
                                                                       "attention",
                                                                       "memory_bound",
                                                                       "launch",
                                                                       "recomputation",
                                                                       "tensor_parallel",
                                                                       "context_parallel",
                                                                       "pipeline_send",
                                                                       "pipeline_bubble",
                                                                       "data_parallel",
                                                                       "optimizer",
                                                                       "memory_pressure",
                                                                       "other"};

struct StepPrice {
  double step_seconds = 0;
  std::array<double, kNumKinds> seconds{};  // adds up to step_seconds; along the slowest stage
  double peak_memory_bytes = 0;             // of the fullest stage, reserve and context included
  double capacity_bytes = 0;
  bool fits = false;           // M13
  double fit_probability = 0;  // M13

  double operator[](Kind kind) const { return seconds[static_cast<size_t>(kind)]; }
  double& operator[](Kind kind) { return seconds[static_cast<size_t>(kind)]; }
};

// One pipeline rank of a priced layout.
struct StagePrice {
  memory::StageGroup group;
  double forward_seconds = 0;   // of one micro-batch, all chunks of the rank
  double backward_seconds = 0;  // recomputation included
  memory::StageMemory memory;
};

class Pricer {
 public:
  explicit Pricer(const spec::Job& job);
  // With these coefficients instead of the job's calibration's; the job is shared, not copied.
  Pricer(std::shared_ptr<const spec::Job> job, const spec::Coefficients& coefficients);
  ~Pricer();
  Pricer(Pricer&&) noexcept;

  // Price of a legal layout. Illegal ones are undefined: check layout::legality first.
  StepPrice price(const layout::Layout& layout);

  // The peak bytes alone (price().peak_memory_bytes), for pruning what cannot fit.
  double peak_memory_bytes(const layout::Layout& layout);

  // Every pipeline rank of a legal layout, in rank order.
  std::vector<StagePrice> stages(const layout::Layout& layout);

  // Embedding and head in units of one layer's time, as the balanced split needs them.
  memory::EndCosts end_costs(const layout::Layout& layout);

  const Machine& machine() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What all GPUs of the job could do: the peak that MFU is measured against.
double peak_flops_per_second(const spec::Job& job);

// Model FLOPs of a step (PaLM) over what the GPUs could do in its seconds (C26).
double model_flops_utilization(const spec::Job& job, double step_seconds);

}  // namespace layline::cost
