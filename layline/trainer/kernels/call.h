// From tensors to the kernels of simd/: element types, pointers, and the checks that keep pointers inside.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

#include "layline/trainer/kernels/simd/kernels.h"

namespace layline::trainer::kernels {

// The family for the instruction set in use.
template <typename Kernels>
Kernels kernels() {
  switch (instruction_set()) {
#ifdef __x86_64__
    case InstructionSet::kAvx512Bf16:
      return simd::kernels_of<Kernels, InstructionSet::kAvx512Bf16>();
    case InstructionSet::kAvx512:
      return simd::kernels_of<Kernels, InstructionSet::kAvx512>();
    case InstructionSet::kAvx2:
      return simd::kernels_of<Kernels, InstructionSet::kAvx2>();
#endif
    default:
      return simd::kernels_of<Kernels, InstructionSet::kDefault>();
  }
}

template <typename T>
struct ElementType {
  using Type = T;
};

// Calls visitor(ElementType<T>{}) with the T that a bf16, fp32 or fp64 tensor holds.
template <typename Visitor>
decltype(auto) visit_element_type(at::ScalarType dtype, Visitor&& visitor) {
  switch (dtype) {
    case at::kBFloat16:
      return std::forward<Visitor>(visitor)(ElementType<simd::Bf16>{});
    case at::kFloat:
      return std::forward<Visitor>(visitor)(ElementType<float>{});
    default:
      TORCH_CHECK(dtype == at::kDouble, "kernels exist for bf16, fp32 and fp64, not ", dtype);
      return std::forward<Visitor>(visitor)(ElementType<double>{});
  }
}

template <typename T>
T* data(const at::Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(tensor.element_size() == sizeof(T) && tensor.is_cpu());
  return static_cast<T*>(tensor.data_ptr());
}

// fp64 for fp64, else fp32.
inline at::ScalarType arithmetic_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

inline int64_t rows_of(const at::Tensor& tensor) { return tensor.numel() == 0 ? 0 : tensor.numel() / tensor.size(-1); }

inline void check_dense(const at::Tensor& tensor, const char* name, at::ScalarType dtype, int64_t num_elements) {
  TORCH_CHECK(tensor.is_contiguous(), name, " is not contiguous: strides ", tensor.strides());
  TORCH_CHECK(tensor.scalar_type() == dtype, name, " is ", tensor.scalar_type(), ", not ", dtype);
  TORCH_CHECK(tensor.numel() == num_elements, name, " has ", tensor.numel(), " elements, not ", num_elements);
}

}  // namespace layline::trainer::kernels
