#include "layline/cost/machine.h"

#include <algorithm>

namespace layline::cost {
namespace {

double sixteen_bit_peak(const spec::Gpu& gpu) { return std::max(gpu.bf16_flops_per_second, gpu.fp16_flops_per_second); }

}  // namespace

Machine::Machine(const spec::Job& job, const spec::Coefficients& coefficients)
    : k(coefficients),
      gemm_flops_per_second(job.cluster.gpu.peak_flops_per_second(job.precision) *
                            (job.precision == spec::Precision::kFp8 ? k.fp8_gemm_efficiency : k.gemm_efficiency)),
      attention_flops_per_second(job.precision == spec::Precision::kFp32 ? job.cluster.gpu.fp32_flops_per_second
                                                                         : sixteen_bit_peak(job.cluster.gpu)),
      memory_bytes_per_second(job.cluster.gpu.memory_bytes_per_second * k.memory_efficiency),
      peak_flops_per_second(job.cluster.gpu.peak_flops_per_second(job.precision)),
      num_sms(job.cluster.gpu.num_sms),
      gpus_per_node(job.cluster.gpus_per_node),
      intra_bytes_per_second(job.cluster.intra_bytes_per_second),
      inter_bytes_per_second_per_node(job.cluster.inter_bytes_per_second_per_node),
      inter_bytes_per_second_per_gpu(job.cluster.inter_bytes_per_second_per_gpu),
      intra_latency_seconds(job.cluster.intra_latency_seconds),
      inter_latency_seconds(job.cluster.inter_latency_seconds) {
  if (job.cluster.is_measured_with(job.engine.name)) measured = std::make_shared<const Measured>(job, k);
}

}  // namespace layline::cost
