#include "layline/trainer/model/parallel_linear.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>
#include <vector>

#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/model/mutation.h"

namespace layline::trainer::model {

namespace {

std::vector<int64_t> with_dim0(const at::Tensor& tensor, int64_t dim0) {
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = dim0;
  return shape;
}

at::Tensor rows(const at::Tensor& tensor) { return tensor.reshape({-1, tensor.size(-1)}); }

// A sum over tp that runs while something else is computed.
struct PendingSum {
  at::Tensor result;
  std::unique_ptr<comm::Pending> pending;
};

PendingSum start_sum(const at::Tensor& partial, Context& context) {
  if (context.tp_size() == 1) return {partial, nullptr};
  if (mutated(Mutation::kSkipColumnInputSum) && !context.shards_sequence()) return {partial, nullptr};
  if (!context.shards_sequence()) return {partial, context.tp->all_reduce_async(partial)};
  const at::Tensor part = at::empty(with_dim0(partial, partial.size(0) / context.tp_size()), partial.options());
  return {part, context.tp->reduce_scatter_async(partial, part)};
}

}  // namespace

at::Tensor gather_sequence(const at::Tensor& part, Context& context) {
  if (!context.shards_sequence()) return part;
  const at::Tensor whole = at::empty(with_dim0(part, part.size(0) * context.tp_size()), part.options());
  context.tp->all_gather(part.contiguous(), whole);
  return whole;
}

at::Tensor reduce_to_sequence_part(const at::Tensor& partial, Context& context) {
  const at::Tensor part = at::empty(with_dim0(partial, partial.size(0) / context.tp_size()), partial.options());
  context.tp->reduce_scatter(partial.contiguous(), part);
  return part;
}

void add_product(const ParameterGroup& weight, const at::Tensor& dy, const at::Tensor& x) {
  const at::Tensor dy_t = rows(dy).t();
  if (weight.main_grad.scalar_type() == dy.scalar_type()) {
    weight.main_grad.addmm_(dy_t, rows(x));
  } else {
    kernels::accumulate_(weight.main_grad, at::mm(dy_t, rows(x)));
  }
  if (mutated(Mutation::kBf16Accumulation)) weight.main_grad.copy_(weight.main_grad.to(at::kBFloat16));
}

void add_weight_gradient(const ParameterGroup& weight, const at::Tensor& dy, const at::Tensor& x) {
  add_product(weight, dy, x);
  weight.notify();
}

at::Tensor column_parallel(const Activation& input, const ParameterGroup& weight, Context& context) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = at::linear(gather_sequence(input.tensor, context), weight.value);
  }
  return with_backward(output, {input.tensor},
                       [saved = input.saved, &weight, &context](const at::Tensor& dy) -> std::vector<at::Tensor> {
                         const at::Tensor x = saved.get();
                         PendingSum dx = start_sum(at::matmul(dy, weight.value), context);
                         context.weight_gradients.add([x, dy, &weight, &context] {
                           add_weight_gradient(weight, dy, gather_sequence(x, context));
                         });
                         if (dx.pending) dx.pending->wait();
                         return {dx.result};
                       });
}

at::Tensor row_parallel(const Activation& input, const ParameterGroup& weight, Context& context) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = at::linear(input.tensor, weight.value);
    if (context.shards_sequence()) {
      output = reduce_to_sequence_part(output, context);
    } else if (context.tp_size() > 1) {
      context.tp->all_reduce(output);
    }
    if (mutated(Mutation::kDoubleRowSum)) output.mul_(context.tp_size());
  }
  return with_backward(
      output, {input.tensor},
      [saved = input.saved, &weight, &context](const at::Tensor& dy) -> std::vector<at::Tensor> {
        const at::Tensor dy_whole = gather_sequence(dy, context);
        const at::Tensor x = saved.get();
        at::Tensor dx = at::matmul(dy_whole, weight.value);
        context.weight_gradients.add([x, dy_whole, &weight] { add_weight_gradient(weight, dy_whole, x); });
        return {dx};
      });
}

}  // namespace layline::trainer::model
