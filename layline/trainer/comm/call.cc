#include "layline/trainer/comm/call.h"

#include <ATen/ATen.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "layline/trainer/comm/reduce.h"

namespace layline::trainer::comm {

namespace {

void check(bool holds, const Call& call, const char* rule) {
  if (!holds) throw std::logic_error(fmt::format("{}: {}", describe(call), rule));
}

}  // namespace

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kAllReduceMax:
      return "all_reduce_max";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
  }
  return "";
}

std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  return fmt::format("[{}] {}", fmt::join(tensor.sizes(), ", "), c10::toString(tensor.scalar_type()));
}

std::string describe(const Call& call) {
  const char* name = name_of(call.operation);
  if (call.operation == Operation::kBarrier) return name;
  if (call.operation == Operation::kBroadcast) {
    return fmt::format("{} of {} from rank {}", name, describe(call.input), call.root);
  }
  return fmt::format("{} of {}", name, describe(call.input));
}

std::string describe_ranks(const std::vector<int64_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  return fmt::format("ranks {} and {}", fmt::join(ranks.begin(), ranks.end() - 1, ", "), ranks.back());
}

bool is_reduction(Operation operation) {
  return operation == Operation::kAllReduce || operation == Operation::kAllReduceMax ||
         operation == Operation::kReduceScatter;
}

void check_call(const Call& call, int64_t group_size) {
  if (call.operation == Operation::kBarrier) return;
  check(call.input.defined() && call.output.defined(), call, "the tensor is undefined");
  check(call.input.is_contiguous() && call.output.is_contiguous(), call, "the tensor is not contiguous");
  check(call.input.scalar_type() == call.output.scalar_type(), call, "input and output differ in dtype");
  check(!is_reduction(call.operation) || can_reduce(call.input.scalar_type()), call, "this dtype cannot be reduced");
  if (call.operation == Operation::kReduceScatter) {
    check(call.input.numel() == group_size * call.output.numel(), call, "the input is not group size times the output");
  }
  if (call.operation == Operation::kAllGather) {
    check(call.output.numel() == group_size * call.input.numel(), call, "the output is not group size times the input");
  }
  if (call.operation == Operation::kBroadcast) {
    check(call.root >= 0 && call.root < group_size, call, "the root is not a rank of the group");
  }
}

void check_on_cpu(const Call& call, int64_t group_size) {
  check_call(call, group_size);
  const bool is_on_cpu = call.operation == Operation::kBarrier || (call.input.is_cpu() && call.output.is_cpu());
  check(is_on_cpu || group_size == 1, call, "the tensor is not in main memory");
}

void do_alone(const Call& call) {
  if (call.operation != Operation::kReduceScatter && call.operation != Operation::kAllGather) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (call.output.data_ptr() != call.input.data_ptr()) call.output.view(-1).copy_(call.input.view(-1));
}

bool same_collective(const Call& a, const Call& b) {
  if (a.operation != b.operation || a.root != b.root) return false;
  if (a.operation == Operation::kBarrier) return true;
  return a.input.sizes() == b.input.sizes() && a.input.scalar_type() == b.input.scalar_type();
}

}  // namespace layline::trainer::comm
