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

Operands Operands::random(const std::vector<int64_t>& shape, at::ScalarType dtype) {
  const int64_t n = num_elements(shape), repeats = (n + noise().numel() - 1) / noise().numel();
  const at::Tensor first = noise().to(dtype).repeat({repeats}).narrow(0, 0, n).view(shape);
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
