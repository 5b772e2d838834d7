#include "layline/trainer/measure/operands.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace layline::trainer::measure {
namespace {

constexpr int64_t kBytes = 12 << 20;  // of all, where they are not many: more than a core's own cache
constexpr int64_t kMostTensors = 16;

// Random numbers are slow to make: once for all.
const at::Tensor& noise() {
  static const at::Tensor numbers = at::randn({int64_t{1} << 20}, at::kFloat) * 0.1;
  return numbers;
}

int64_t num_elements(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

int64_t num_copies(int64_t bytes) { return std::clamp<int64_t>(kBytes / std::max<int64_t>(bytes, 1), 2, kMostTensors); }

}  // namespace

void Operands::fill(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.view({-1});
  for (int64_t start = 0; start < flat.numel(); start += noise().numel()) {
    const int64_t length = std::min(noise().numel(), flat.numel() - start);
    flat.narrow(0, start, length).copy_(noise().narrow(0, 0, length));
  }
}

Operands Operands::random(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  const at::Tensor first = at::empty(shape, dtype);
  fill(first);
  Operands operands;
  const int64_t count = num_copies(static_cast<int64_t>(first.nbytes()));
  for (int64_t i = 0; i < count; ++i) operands.tensors_.push_back(first.clone());
  return operands;
}

Operands Operands::zeros(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  Operands operands;
  const int64_t count = num_copies(num_elements(shape) * static_cast<int64_t>(at::elementSize(dtype)));
  for (int64_t i = 0; i < count; ++i) operands.tensors_.push_back(at::zeros(shape, dtype));
  return operands;
}

}  // namespace layline::trainer::measure
