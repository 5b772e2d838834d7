// What the tests of kernels share: settings, random tensors, bounds on errors, and gradients by autograd in fp64.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "layline/trainer/kernels/instruction_set.h"

namespace layline::trainer::kernels::test {

inline const at::ScalarType kElementTypes[] = {at::kBFloat16, at::kFloat, at::kDouble};

inline std::vector<InstructionSet> supported_sets() {
  std::vector<InstructionSet> sets;
  for (const InstructionSet set :
       {InstructionSet::kDefault, InstructionSet::kAvx2, InstructionSet::kAvx512, InstructionSet::kAvx512Bf16}) {
    if (is_supported(set)) sets.push_back(set);
  }
  return sets;
}

// Until it is destroyed.
class ScopedThreads {
 public:
  explicit ScopedThreads(int num_threads) : previous_(at::get_num_threads()) { at::set_num_threads(num_threads); }
  ~ScopedThreads() { at::set_num_threads(previous_); }
  ScopedThreads(const ScopedThreads&) = delete;
  ScopedThreads& operator=(const ScopedThreads&) = delete;

 private:
  int previous_;
};

// Runs body with every instruction set that the processor has, in one thread. threads_test.cc has the others.
inline void with_each_instruction_set(const std::function<void()>& body) {
  const ScopedThreads one_thread(1);
  for (const InstructionSet set : supported_sets()) {
    SCOPED_TRACE(to_string(set));
    const ScopedInstructionSet scoped(set);
    body();
  }
}

// From a normal distribution, a function of the seed alone.
inline at::Tensor random(at::IntArrayRef sizes, at::ScalarType dtype, uint64_t seed) {
  return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(seed), at::dtype(at::kDouble)).to(dtype);
}

inline at::ScalarType arithmetic_of(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

// How far from `expected` (fp64) a result may be that was computed in fp32 (fp64 for fp64) by sums of some hundred
// terms and rounded once to its own dtype. magnitude: of terms that may cancel.
inline void expect_rounded_once(const at::Tensor& actual, const at::Tensor& expected, double magnitude = 0) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  if (actual.numel() == 0) return;
  const bool is_double = actual.scalar_type() == at::kDouble;
  const double unit = is_double ? 0x1p-53 : actual.scalar_type() == at::kFloat ? 0x1p-24 : 0x1p-8;
  const double largest = expected.abs().amax().item<double>();
  const double slack = (is_double ? 1e-14 : 3e-6) * std::max(largest, magnitude);
  const at::Tensor excess = (actual.to(at::kDouble) - expected).abs() - 1.01 * unit * expected.abs();
  EXPECT_LE(excess.max().item<double>(), slack) << "largest expected value " << largest;
}

inline void expect_same_bits(const at::Tensor& a, const at::Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(at::equal(a, b)) << (a - b).abs().max().item<double>();
}

// The value of a function of fp64 leaves and, for the gradient dy of its value, the gradients of the leaves.
struct Reference {
  at::Tensor value;
  std::vector<at::Tensor> gradients;
};

inline Reference differentiate(const std::vector<at::Tensor>& inputs, const at::Tensor& dy,
                               const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.to(at::kDouble).clone().requires_grad_());
  const at::Tensor value = function(leaves);
  return {.value = value.detach(), .gradients = torch::autograd::grad({value}, leaves, {dy.to(at::kDouble)})};
}

}  // namespace layline::trainer::kernels::test
