#include "layline/spec/gpu.h"

namespace layline::spec {

double Gpu::peak_flops_per_second(Precision precision) const {
  switch (precision) {
    case Precision::kBf16:
      return bf16_flops_per_second;
    case Precision::kFp16:
      return fp16_flops_per_second;
    case Precision::kFp8:
      return fp8_flops_per_second;
    case Precision::kFp32:
      break;
  }
  return fp32_flops_per_second;
}

}  // namespace layline::spec
