// Sums and maxima over the ranks' parts, element by element in rank order: what makes every kind of group give the same
// bits.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace layline::trainer::comm {

enum class Reduction { kSum, kMax };

// Whether tensors of that dtype can be reduced: fp64, fp32, bf16, fp16, int64 and int32.
bool can_reduce(c10::ScalarType dtype);

// out[i] = parts[0][i] + parts[1][i] + …, or their maximum (NaN if one is), for num elements of dtype in main memory.
// bf16 and fp16 are summed in fp32 and rounded once. out may be one of the parts.
void reduce_parts(Reduction reduction, c10::ScalarType dtype, const std::vector<const void*>& parts, void* out,
                  int64_t num);

}  // namespace layline::trainer::comm
