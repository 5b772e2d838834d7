// Which instructions the kernels of simd/ use. They are compiled once for each set and chosen when they are called.
#pragma once

namespace layline::trainer::kernels {

enum class InstructionSet {
  kDefault,     // what every processor of the architecture has
  kAvx2,        // AVX2, FMA
  kAvx512,      // AVX-512 F, BW, DQ, VL
  kAvx512Bf16,  // and BF16: products of bf16 in one instruction
};

const char* to_string(InstructionSet set);

bool is_supported(InstructionSet set);

// What kernels that this thread calls use: the last of the sets that is fast on this processor, unless a
// ScopedInstructionSet says otherwise. Intel's processors do two multiplications of fp32 in the time of one product of
// two bf16 pairs a lane (measured on Emerald Rapids: 172 and 85 GFLOP/s a core), AMD's half as many.
InstructionSet instruction_set();

// Until it is destroyed, kernels called from this thread use `set`, which the processor must support: for tests and
// benchmarks.
class ScopedInstructionSet {
 public:
  explicit ScopedInstructionSet(InstructionSet set);
  ~ScopedInstructionSet();
  ScopedInstructionSet(const ScopedInstructionSet&) = delete;
  ScopedInstructionSet& operator=(const ScopedInstructionSet&) = delete;

 private:
  InstructionSet previous_;
};

}  // namespace layline::trainer::kernels
