// Which instructions the kernels of simd/ use. They are compiled once for each set and chosen when they are called.
#pragma once

namespace layline::trainer::kernels {

enum class InstructionSet {
  kDefault,  // what every processor of the architecture has
  kAvx2,     // AVX2, FMA
  kAvx512,   // AVX-512 F, BW, DQ, VL and BF16
};

const char* to_string(InstructionSet set);

bool is_supported(InstructionSet set);

// What kernels that this thread calls use: the largest set that the processor has, unless a ScopedInstructionSet says
// otherwise.
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
