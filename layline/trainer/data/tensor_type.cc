#include "layline/trainer/data/tensor_type.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace layline::trainer::data {
namespace {

// Index = formats::TensorType.
constexpr std::array<at::ScalarType, 15> kScalarTypes = {
    at::ScalarType::Bool,        at::ScalarType::Byte,   at::ScalarType::Char,   at::ScalarType::Float8_e4m3fn,
    at::ScalarType::Float8_e5m2, at::ScalarType::Short,  at::ScalarType::UInt16, at::ScalarType::Half,
    at::ScalarType::BFloat16,    at::ScalarType::Int,    at::ScalarType::UInt32, at::ScalarType::Float,
    at::ScalarType::Long,        at::ScalarType::UInt64, at::ScalarType::Double};

}  // namespace

at::ScalarType to_scalar_type(formats::TensorType type) { return kScalarTypes.at(static_cast<size_t>(type)); }

formats::TensorType to_tensor_type(at::ScalarType type) {
  const auto* const found = std::find(kScalarTypes.begin(), kScalarTypes.end(), type);
  assert(found != kScalarTypes.end());
  return static_cast<formats::TensorType>(found - kScalarTypes.begin());
}

}  // namespace layline::trainer::data
