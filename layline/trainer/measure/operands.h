// Tensors to measure with: several of a kind, so that one call does not find in the cache what the one before left
// there.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace layline::trainer::measure {

class Operands {
 public:
  // Normal random numbers, that others may use too: to be read.
  static Operands random(const std::vector<int64_t>& shape, at::ScalarType dtype);
  // Fills a tensor with the like.
  static void fill(const at::Tensor& tensor);
  // Zeros of its own: to be written.
  static Operands zeros(const std::vector<int64_t>& shape, at::ScalarType dtype);

  const at::Tensor& operator[](int64_t index) const { return tensors_[static_cast<size_t>(index) % tensors_.size()]; }

 private:
  std::vector<at::Tensor> tensors_;
};

}  // namespace layline::trainer::measure
