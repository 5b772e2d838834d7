// One rank's connections to all others over c10d's Gloo, and messages on them. Behind gloo_group.h, whose groups all
// use the one mesh of their rank, told apart by tags.
//
// All functions may be called from any thread. The first failure, or abort(), ends every wait, now and later: after it
// the state of the connections is unknown.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "torch/csrc/distributed/c10d/ProcessGroupGloo.hpp"
#include "torch/csrc/distributed/c10d/Store.hpp"

namespace layline::trainer::comm {

// Why a message did not pass.
class LinkError : public std::runtime_error {
 public:
  explicit LinkError(const std::string& reason, bool is_whole = false)
      : std::runtime_error(reason), is_whole_(is_whole) {}
  // Whether the message says what failed; otherwise it goes behind "group dp (…): all_reduce: ".
  bool is_whole() const { return is_whole_; }

 private:
  bool is_whole_;
};

class GlooMesh {
 public:
  // A message on its way. The tensor is kept alive until it is dropped.
  struct Transfer {
    c10::intrusive_ptr<c10d::Work> work;
    int64_t peer = 0;
  };
  using Deadline = std::chrono::steady_clock::time_point;

  // Connects to all ranks. address: of this machine, at which the others reach it. Throws LinkError.
  GlooMesh(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t size, const std::string& address,
           std::chrono::milliseconds timeout);

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  Deadline deadline() const { return std::chrono::steady_clock::now() + timeout_; }

  // A number of the group that is the same on all its ranks and no other group's, below 8192. Waits for its first rank.
  int64_t group_number(const std::string& key, bool is_first_rank);

  // Messages of one tag between two ranks are matched in order. 0 <= tag < 2^31. Tensors are contiguous and on the CPU.
  // Both sides of a tag must agree on the length: Gloo ends the process when they do not.
  Transfer send(at::Tensor tensor, int64_t peer, int64_t tag);
  Transfer receive(at::Tensor tensor, int64_t peer, int64_t tag);

  // Throws LinkError when the peer is lost, the deadline is over, or the mesh has failed.
  void wait(const Transfer& transfer, Deadline deadline);

  void throw_if_failed();
  void abort(const std::string& reason);
  // What later calls are told of the first failure: `message`, if its reason was `reason`. The reason of an abort
  // stays.
  void explain_failure(const std::string& reason, const std::string& message);

 private:
  void end_all(const std::string& reason, bool is_abort);
  [[noreturn]] void fail(int64_t peer, const std::string& reason, std::chrono::milliseconds waited);
  void register_wait(c10d::Work* work);
  void unregister_wait(c10d::Work* work);

  const int64_t rank_;
  const int64_t size_;
  const std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> connections_;
  std::mutex mutex_;
  std::string failure_;
  bool is_failure_whole_ = false;
  bool is_aborted_ = false;
  std::vector<c10d::Work*> waiting_;
};

}  // namespace layline::trainer::comm
