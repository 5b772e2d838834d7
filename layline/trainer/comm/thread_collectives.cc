#include "layline/trainer/comm/thread_collectives.h"

#include <ATen/ATen.h>

namespace layline::trainer::comm {

namespace {

// Sum of parts over ranks into output, which may be the first part; bf16 in fp32, rounded once.
void sum_into(at::Tensor output, const std::vector<at::Tensor>& parts) {
  if (parts.size() == 1) {
    if (!output.is_same(parts[0])) output.copy_(parts[0]);
    return;
  }
  const bool is_widened = output.scalar_type() == at::kBFloat16 || output.scalar_type() == at::kHalf;
  at::Tensor sum = is_widened ? parts[0].to(at::kFloat) : output;
  if (!is_widened && !sum.is_same(parts[0])) sum.copy_(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) sum.add_(parts[i]);
  if (is_widened) output.copy_(sum);
}

void all_reduce(const std::vector<Call>& calls) {
  std::vector<at::Tensor> parts;
  for (const Call& call : calls) parts.push_back(call.input);
  sum_into(parts[0], parts);
  for (size_t i = 1; i < parts.size(); ++i) parts[i].copy_(parts[0]);
}

void all_reduce_max(const std::vector<Call>& calls) {
  at::Tensor largest = calls[0].input;
  for (size_t i = 1; i < calls.size(); ++i) at::maximum_out(largest, largest, calls[i].input);
  for (size_t i = 1; i < calls.size(); ++i) calls[i].output.copy_(largest);
}

void reduce_scatter(const std::vector<Call>& calls) {
  const int64_t num_each = calls[0].output.numel();
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    std::vector<at::Tensor> parts;
    for (const Call& call : calls) {
      parts.push_back(call.input.view(-1).narrow(0, static_cast<int64_t>(rank) * num_each, num_each));
    }
    sum_into(calls[rank].output.view(-1), parts);
  }
}

void all_gather(const std::vector<Call>& calls) {
  const int64_t num_each = calls[0].input.numel();
  for (const Call& to : calls) {
    for (size_t rank = 0; rank < calls.size(); ++rank) {
      const at::Tensor part = to.output.view(-1).narrow(0, static_cast<int64_t>(rank) * num_each, num_each);
      const at::Tensor source = calls[rank].input.view(-1);
      if (part.data_ptr() != source.data_ptr()) part.copy_(source);
    }
  }
}

void broadcast(const std::vector<Call>& calls) {
  const size_t root = static_cast<size_t>(calls[0].root);
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    if (rank != root) calls[rank].output.copy_(calls[root].input);
  }
}

}  // namespace

void do_collective(const std::vector<Call>& calls) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  switch (calls[0].operation) {
    case Operation::kAllReduce:
      return all_reduce(calls);
    case Operation::kAllReduceMax:
      return all_reduce_max(calls);
    case Operation::kReduceScatter:
      return reduce_scatter(calls);
    case Operation::kAllGather:
      return all_gather(calls);
    case Operation::kBroadcast:
      return broadcast(calls);
    default:
      return;
  }
}

}  // namespace layline::trainer::comm
