#include "layline/trainer/kernels/instruction_set.h"

#include <cassert>

namespace layline::trainer::kernels {
namespace {

bool is_bf16_product_fast() {
#ifdef __x86_64__
  return __builtin_cpu_is("amd");
#else
  return false;
#endif
}

InstructionSet fastest_supported() {
  if (is_supported(InstructionSet::kAvx512Bf16) && is_bf16_product_fast()) return InstructionSet::kAvx512Bf16;
  for (const InstructionSet set : {InstructionSet::kAvx512, InstructionSet::kAvx2}) {
    if (is_supported(set)) return set;
  }
  return InstructionSet::kDefault;
}

InstructionSet& current() {
  thread_local InstructionSet set = fastest_supported();
  return set;
}

}  // namespace

const char* to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512Bf16:
      return "AVX-512 with BF16";
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
    case InstructionSet::kAvx512Bf16:
      return is_supported(InstructionSet::kAvx512) && __builtin_cpu_supports("avx512bf16");
    case InstructionSet::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
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
