#include "layline/trainer/kernels/accumulate.h"

#include <ATen/ATen.h>

namespace layline::trainer::kernels {

void accumulate_(at::Tensor main, const at::Tensor& grad) { main.add_(grad); }

}  // namespace layline::trainer::kernels
