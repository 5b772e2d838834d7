// One rank's part of a collective as a value, and the rules that every kind of group checks before it starts one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace layline::trainer::comm {

enum class Operation { kAllReduce, kAllReduceMax, kReduceScatter, kAllGather, kBroadcast, kBarrier, kSend, kReceive };

const char* name_of(Operation operation);  // as the function of Group: "all_reduce"

bool is_reduction(Operation operation);

// input and output as in Group; where it works in place both are the tensor; undefined for a barrier.
struct Call {
  Operation operation = Operation::kBarrier;
  at::Tensor input;
  at::Tensor output;
  int64_t root = 0;  // rank within the group, for a broadcast
};

// "[4, 8] BFloat16".
std::string describe(const at::Tensor& tensor);

// "all_reduce of [4, 8] BFloat16", "broadcast of [3] Float from rank 1", "barrier".
std::string describe(const Call& call);

// "rank 3" or "ranks 0, 2 and 3".
std::string describe_ranks(const std::vector<int64_t>& ranks);

// Throws std::logic_error when the tensors are not contiguous, their numbers of elements do not fit a group of that
// size, their dtypes differ
// or cannot be reduced: a mistake of the caller that would lose data in silence.
void check_call(const Call& call, int64_t group_size);

// The same, and that the tensors are in main memory, where groups of several ranks need them.
void check_on_cpu(const Call& call, int64_t group_size);

// What a collective is in a group of one rank: a copy from input to output where they differ. On any device.
void do_alone(const Call& call);

// Whether every rank of a group may bring these two to one collective: same operation, shapes, dtypes and root.
bool same_collective(const Call& a, const Call& b);

}  // namespace layline::trainer::comm
