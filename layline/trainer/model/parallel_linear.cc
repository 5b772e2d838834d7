#include "layline/trainer/model/parallel_linear.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>
#include <vector>

#include "layline/trainer/kernels/accumulate.h"
#include "layline/trainer/model/mutation.h"
#include "layline/trainer/tally/work.h"

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

  void wait() const {
    if (!pending) return;
    const tally::WorkScope work(tally::Work::kTensorParallel);
    pending->wait();
  }
};

at::Tensor input_gradient(const at::Tensor& dy, const ParameterGroup& weight) {
  const tally::WorkScope work(tally::Work::kMatrixMultiplication);
  return at::matmul(dy, weight.value);
}

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
  const tally::WorkScope work(tally::Work::kTensorParallel);
  context.tp->all_gather(part.contiguous(), whole);
  return whole;
}

at::Tensor reduce_to_sequence_part(const at::Tensor& partial, Context& context) {
  const at::Tensor part = at::empty(with_dim0(partial, partial.size(0) / context.tp_size()), partial.options());
  const tally::WorkScope work(tally::Work::kTensorParallel);
  context.tp->reduce_scatter(partial.contiguous(), part);
  return part;
}

void sum_over_tp(const at::Tensor& partial, Context& context) {
  const tally::WorkScope work(tally::Work::kTensorParallel);
  context.tp->all_reduce(partial);
}

at::Tensor product(const at::Tensor& x, const at::Tensor& weight) {
  const tally::WorkScope work(tally::Work::kMatrixMultiplication);
  return at::linear(x, weight);
}

void add_product(const ParameterGroup& weight, const at::Tensor& dy, const at::Tensor& x) {
  const tally::WorkScope work(tally::Work::kMatrixMultiplication);
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
    output = product(gather_sequence(input.tensor, context), weight.value);
  }
  return with_backward(output, {input.tensor},
                       [saved = input.saved, &weight, &context](const at::Tensor& dy) -> std::vector<at::Tensor> {
                         const at::Tensor x = saved.get();
                         PendingSum dx = start_sum(input_gradient(dy, weight), context);
                         context.weight_gradients.add([x, dy, &weight, &context] {
                           add_weight_gradient(weight, dy, gather_sequence(x, context));
                         });
                         dx.wait();
                         return {dx.result};
                       });
}

at::Tensor row_parallel(const Activation& input, const ParameterGroup& weight, Context& context) {
  at::Tensor output;
  {
    const at::NoGradGuard no_grad;
    output = product(input.tensor, weight.value);
    if (context.shards_sequence()) {
      output = reduce_to_sequence_part(output, context);
    } else if (context.tp_size() > 1) {
      sum_over_tp(output, context);
    }
    if (mutated(Mutation::kDoubleRowSum)) output.mul_(context.tp_size());
  }
  return with_backward(
      output, {input.tensor},
      [saved = input.saved, &weight, &context](const at::Tensor& dy) -> std::vector<at::Tensor> {
        const at::Tensor dy_whole = gather_sequence(dy, context);
        const at::Tensor x = saved.get();
        at::Tensor dx = input_gradient(dy_whole, weight);
        context.weight_gradients.add([x, dy_whole, &weight] { add_weight_gradient(weight, dy_whole, x); });
        return {dx};
      });
}

}  // namespace layline::trainer::model
