#include "layline/trainer/kernels/swiglu.h"

#include <ATen/ATen.h>

namespace layline::trainer::kernels {
namespace {

at::ScalarType arithmetic_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace

at::Tensor swiglu(const at::Tensor& gate_up_T2F) {
  const auto parts = gate_up_T2F.to(arithmetic_type(gate_up_T2F)).chunk(2, -1);
  return (at::silu(parts[0]) * parts[1]).to(gate_up_T2F.scalar_type());
}

at::Tensor swiglu_backward(const at::Tensor& dy_TF, const at::Tensor& gate_up_T2F) {
  const auto parts = gate_up_T2F.to(arithmetic_type(gate_up_T2F)).chunk(2, -1);
  const at::Tensor dy = dy_TF.to(parts[0].scalar_type());
  const at::Tensor sigmoid = parts[0].sigmoid();
  const at::Tensor silu = parts[0] * sigmoid;
  return at::cat({dy * parts[1] * (sigmoid + silu * (1 - sigmoid)), dy * silu}, -1).to(gate_up_T2F.scalar_type());
}

}  // namespace layline::trainer::kernels
