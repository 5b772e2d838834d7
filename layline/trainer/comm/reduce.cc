#include "layline/trainer/comm/reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <stdexcept>

namespace layline::trainer::comm {

namespace {

// Of elements, in the first-level cache.
constexpr int64_t kBlock = 1024;

template <class Sum>
Sum larger(Sum a, Sum b) {
  return b > a || b != b ? b : a;
}

template <class Scalar, class Sum>
void reduce_as(Reduction reduction, const std::vector<const void*>& parts, void* out, int64_t num) {
  Sum block[kBlock];
  for (int64_t start = 0; start < num; start += kBlock) {
    const int64_t length = std::min(kBlock, num - start);
    const auto* first = static_cast<const Scalar*>(parts[0]) + start;
    for (int64_t i = 0; i < length; ++i) block[i] = static_cast<Sum>(first[i]);
    for (size_t rank = 1; rank < parts.size(); ++rank) {
      const auto* part = static_cast<const Scalar*>(parts[rank]) + start;
      if (reduction == Reduction::kSum) {
        for (int64_t i = 0; i < length; ++i) block[i] += static_cast<Sum>(part[i]);
      } else {
        for (int64_t i = 0; i < length; ++i) block[i] = larger(block[i], static_cast<Sum>(part[i]));
      }
    }
    auto* result = static_cast<Scalar*>(out) + start;
    for (int64_t i = 0; i < length; ++i) result[i] = static_cast<Scalar>(block[i]);
  }
}

}  // namespace

bool can_reduce(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::Double:
    case c10::ScalarType::Float:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Half:
    case c10::ScalarType::Long:
    case c10::ScalarType::Int:
      return true;
    default:
      return false;
  }
}

void reduce_parts(Reduction reduction, c10::ScalarType dtype, const std::vector<const void*>& parts, void* out,
                  int64_t num) {
  switch (dtype) {
    case c10::ScalarType::Double:
      return reduce_as<double, double>(reduction, parts, out, num);
    case c10::ScalarType::Float:
      return reduce_as<float, float>(reduction, parts, out, num);
    case c10::ScalarType::BFloat16:
      return reduce_as<c10::BFloat16, float>(reduction, parts, out, num);
    case c10::ScalarType::Half:
      return reduce_as<c10::Half, float>(reduction, parts, out, num);
    case c10::ScalarType::Long:
      return reduce_as<int64_t, int64_t>(reduction, parts, out, num);
    case c10::ScalarType::Int:
      return reduce_as<int32_t, int32_t>(reduction, parts, out, num);
    default:
      throw std::logic_error("a dtype that cannot be reduced");
  }
}

}  // namespace layline::trainer::comm
