// A job's hardware as rates: what one GPU computes and moves, and what its links carry, after the calibration's
// efficiencies (docs/model.md, C1). Made once per job; every cost function takes it.
#pragma once

#include <cstdint>
#include <memory>

#include "layline/cost/measured.h"
#include "layline/spec/coefficients.h"
#include "layline/spec/job.h"

namespace layline::cost {

struct Machine {
  Machine(const spec::Job& job, const spec::Coefficients& coefficients);

  spec::Coefficients k;
  double gemm_flops_per_second;       // dense peak of the job's precision × gemm efficiency
  double attention_flops_per_second;  // peak of the 16-bit type: attention never runs in fp8 here
  double memory_bytes_per_second;     // HBM peak × memory efficiency
  double peak_flops_per_second;       // the peak that MFU is measured against (16-bit, or fp8 for fp8 jobs)
  int num_sms;
  int64_t gpus_per_node;
  double intra_bytes_per_second;  // per GPU and direction, link peak
  double inter_bytes_per_second_per_node;
  double inter_bytes_per_second_per_gpu;
  double intra_latency_seconds;
  double inter_latency_seconds;
  std::shared_ptr<const Measured> measured;  // null: times are worked out from the rates above
};

}  // namespace layline::cost
