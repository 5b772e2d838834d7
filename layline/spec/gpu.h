// One accelerator: peaks, memory, links. Numbers are the vendor's dense peaks (no sparsity); each has its source.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "layline/spec/types.h"

namespace layline::spec {

struct Gpu {
  std::string name;                  // "a100-80gb"
  std::string title;                 // "A100 80 GB SXM"
  std::string family;                // "a100": GPUs that share calibrations; they differ in memory only
  std::vector<std::string> aliases;  // as hardware is called in run records: "A100-80GB SXM"
  // Dense peak for each precision it has, 0: it has none.
  double bf16_flops_per_second = 0;
  double fp16_flops_per_second = 0;
  double fp8_flops_per_second = 0;
  double fp32_flops_per_second = 0;    // TF32 tensor cores where they exist, else plain fp32
  double memory_bytes = 0;             // usable, as the driver reports it
  double memory_bytes_per_second = 0;  // HBM or GDDR peak
  double l2_bytes = 0;
  int num_sms = 0;  // SMs or compute units
  // Per GPU and direction, to its peers inside the node. 0: no such link (PCIe only).
  double nvlink_bytes_per_second = 0;
  double pcie_bytes_per_second = 0;
  std::map<std::string, std::string> sources;  // key of the spec file → where the number comes from

  // 0 when the GPU does not have the precision.
  double peak_flops_per_second(Precision precision) const;
};

}  // namespace layline::spec
