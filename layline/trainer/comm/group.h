// A communicator: the ranks of one group, and the collectives and messages between them.
//
//   std::unique_ptr<Group> tp = …;        // ranks as threads, Gloo, or a fake for dry runs
//   tp->all_reduce(partial);              // in place, sum
//   auto pending = dp->reduce_scatter_async(gradients, shard);  … pending->wait();
//
// Tensors are contiguous. Every rank of the group calls the same collectives in the same order; a group of one rank is
// legal and does nothing but copy. Sums are taken in the tensor's dtype, but bf16 is summed in fp32 and rounded once.
// All ranks get the same bits.
//
// Messages: one channel carries messages between two ranks in the order in which they are sent, and receives match in
// the order in which they are posted. send() returns at once and keeps the tensor alive until it is gone; it must not
// be changed before flush_sends().
//
// A rank that is lost, or that does not come within the group's timeout, ends a call with CommError.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace layline::trainer::comm {

// The group can no longer be used: a rank is gone, or did not come in time. Says which group and what it was doing.
class CommError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Something that was started. Tensors that belong to it are kept alive, and must not be touched, until wait() returns.
// Destroying it without wait() waits.
class Pending {
 public:
  virtual ~Pending() = default;
  virtual void wait() = 0;
};

class Group {
 public:
  virtual ~Group() = default;

  virtual int64_t rank() const = 0;  // within the group
  virtual int64_t size() const = 0;
  virtual const std::string& name() const = 0;  // "tp", "dp", …: for messages

  // In place, over any shape.
  virtual void all_reduce(at::Tensor tensor) = 0;
  virtual void all_reduce_max(at::Tensor tensor) = 0;
  virtual std::unique_ptr<Pending> all_reduce_async(at::Tensor tensor) = 0;

  // input: size() · n elements; output: the sum of this rank's n, elements [rank · n, (rank + 1) · n). The output may
  // be that part of the input itself; otherwise it may not overlap the input.
  virtual void reduce_scatter(at::Tensor input, at::Tensor output) = 0;
  virtual std::unique_ptr<Pending> reduce_scatter_async(at::Tensor input, at::Tensor output) = 0;

  // input: n elements; output: size() · n, in rank order. The input may be this rank's part of the output.
  virtual void all_gather(at::Tensor input, at::Tensor output) = 0;
  virtual std::unique_ptr<Pending> all_gather_async(at::Tensor input, at::Tensor output) = 0;

  virtual void broadcast(at::Tensor tensor, int64_t root) = 0;
  virtual void barrier() = 0;

  // peer: rank within the group, not this one. channel: 0 to 3.
  virtual void send(at::Tensor tensor, int64_t peer, int channel) = 0;
  virtual std::unique_ptr<Pending> receive(at::Tensor tensor, int64_t peer, int channel) = 0;
  // Returns when all that was sent has left.
  virtual void flush_sends() = 0;
};

}  // namespace layline::trainer::comm
