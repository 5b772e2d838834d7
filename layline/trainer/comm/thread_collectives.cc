#include "layline/trainer/comm/thread_collectives.h"

#include <ATen/ATen.h>

#include "layline/trainer/comm/reduce.h"

namespace layline::trainer::comm {

namespace {

// Of the parts, by rank, into output, which may be one of them.
void reduce_into(const at::Tensor& output, const std::vector<at::Tensor>& parts, Reduction reduction) {
  std::vector<const void*> data;
  data.reserve(parts.size());
  for (const at::Tensor& part : parts) data.push_back(part.const_data_ptr());
  reduce_parts(reduction, output.scalar_type(), data, output.mutable_data_ptr(), output.numel());
}

void all_reduce(const std::vector<Call>& calls, Reduction reduction) {
  std::vector<at::Tensor> parts;
  for (const Call& call : calls) parts.push_back(call.input);
  reduce_into(parts[0], parts, reduction);
  for (size_t i = 1; i < parts.size(); ++i) parts[i].copy_(parts[0]);
}

void reduce_scatter(const std::vector<Call>& calls) {
  const int64_t num_each = calls[0].output.numel();
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    std::vector<at::Tensor> parts;
    for (const Call& call : calls) {
      parts.push_back(call.input.view(-1).narrow(0, static_cast<int64_t>(rank) * num_each, num_each));
    }
    reduce_into(calls[rank].output.view(-1), parts, Reduction::kSum);
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
  if (calls.size() == 1) return do_alone(calls[0]);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  switch (calls[0].operation) {
    case Operation::kAllReduce:
      return all_reduce(calls, Reduction::kSum);
    case Operation::kAllReduceMax:
      return all_reduce(calls, Reduction::kMax);
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
