#include "layline/trainer/kernels/instruction_set.h"

#include <cassert>

namespace layline::trainer::kernels {
namespace {

InstructionSet largest_supported() {
  for (const InstructionSet set : {InstructionSet::kAvx512, InstructionSet::kAvx2}) {
    if (is_supported(set)) return set;
  }
  return InstructionSet::kDefault;
}

InstructionSet& current() {
  thread_local InstructionSet set = largest_supported();
  return set;
}

}  // namespace

const char* to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return "AVX-512";
    case InstructionSet::kAvx2:
      return "AVX2";
    case InstructionSet::kDefault:
      break;
  }
  return "default";
}

bool is_supported(InstructionSet set) {
#ifdef __x86_64__
  switch (set) {
    case InstructionSet::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bf16");
    case InstructionSet::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case InstructionSet::kDefault:
      break;
  }
#endif
  return set == InstructionSet::kDefault;
}

InstructionSet instruction_set() { return current(); }

ScopedInstructionSet::ScopedInstructionSet(InstructionSet set) : previous_(current()) {
  assert(is_supported(set));
  current() = set;
}

ScopedInstructionSet::~ScopedInstructionSet() { current() = previous_; }

}  // namespace layline::trainer::kernels
