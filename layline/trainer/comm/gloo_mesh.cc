#include "layline/trainer/comm/gloo_mesh.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

namespace layline::trainer::comm {

namespace {

using std::chrono::milliseconds;

constexpr int64_t kMaxGroups = 8192;

// The first line, without where in Gloo's sources it comes from.
std::string plain_reason(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[') && text.find("] ") != std::string_view::npos) text.remove_prefix(text.find("] ") + 2);
  return std::string(text);
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](auto word) { return text.find(word) != std::string_view::npos; });
}

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

GlooMesh::GlooMesh(const c10::intrusive_ptr<c10d::Store>& store, int64_t rank, int64_t size, const std::string& address,
                   milliseconds timeout)
    : rank_(rank), size_(size), timeout_(timeout), store_(store) {
  if (size == 1) return;
  try {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(address));
    options->threads = 1;  // for its own collectives, which are not used
    connections_ = c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>("mesh", store),
                                                               static_cast<int>(rank), static_cast<int>(size), options);
  } catch (const std::exception& error) {
    throw LinkError(fmt::format("connecting all ranks from {}: {}", address, plain_reason(error.what())));
  }
}

int64_t GlooMesh::group_number(const std::string& key, bool is_first_rank) {
  if (size_ == 1) return 0;
  try {
    if (is_first_rank) {
      const int64_t number = store_->add("num_groups", 1);
      if (number >= kMaxGroups) throw std::logic_error(fmt::format("more than {} groups", kMaxGroups - 1));
      store_->set("group/" + key, std::to_string(number));
      return number;
    }
    store_->wait({"group/" + key}, timeout_);
    return std::stoll(store_->get_to_str("group/" + key));
  } catch (const std::logic_error&) {
    throw;
  } catch (const std::exception& error) {
    throw LinkError(fmt::format("its first rank did not make it: {}", plain_reason(error.what())));
  }
}

// c10d counts messages in a plain integer that nobody reads; apart from it sending is safe from several threads.
GlooMesh::Transfer GlooMesh::send(at::Tensor tensor, int64_t peer, int64_t tag) {
  throw_if_failed();
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  try {
    return {connections_->send(tensors, static_cast<int>(peer), static_cast<int>(tag)), peer};
  } catch (const std::exception& error) {
    fail(peer, error.what(), {});
  }
}

GlooMesh::Transfer GlooMesh::receive(at::Tensor tensor, int64_t peer, int64_t tag) {
  throw_if_failed();
  std::vector<at::Tensor> tensors = {std::move(tensor)};
  try {
    return {connections_->recv(tensors, static_cast<int>(peer), static_cast<int>(tag)), peer};
  } catch (const std::exception& error) {
    fail(peer, error.what(), {});
  }
}

void GlooMesh::wait(const Transfer& transfer, Deadline deadline) {
  const auto start = std::chrono::steady_clock::now();
  const auto left = std::chrono::duration_cast<milliseconds>(deadline - start);
  register_wait(transfer.work.get());
  bool is_done = false;
  std::string reason;
  try {
    is_done = transfer.work->wait(std::max(left, milliseconds(1)));
  } catch (const std::exception& error) {
    reason = error.what();
  }
  unregister_wait(transfer.work.get());
  if (is_done) return;
  throw_if_failed();
  fail(transfer.peer, reason, timeout_);
}

void GlooMesh::register_wait(c10d::Work* work) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw LinkError(failure_, is_failure_whole_);
  waiting_.push_back(work);
}

void GlooMesh::unregister_wait(c10d::Work* work) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), work));
}

void GlooMesh::throw_if_failed() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw LinkError(failure_, is_failure_whole_);
}

void GlooMesh::fail(int64_t peer, const std::string& reason, milliseconds waited) {
  std::string message;
  if (contains_any(reason, {"Timed out", "timed out", "timeout"})) {
    message = fmt::format("rank {} did not come within {:g} s", peer, seconds(waited));
  } else if (contains_any(reason, {"closed", "Connection reset", "Broken pipe"})) {
    message = fmt::format("connection closed by rank {}", peer);
  } else {
    message = fmt::format("connection to rank {}: {}", peer, plain_reason(reason));
  }
  end_all(message, false);
  throw LinkError(message);
}

void GlooMesh::explain_failure(const std::string& reason, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (is_failure_whole_ || is_aborted_ || failure_ != reason) return;
  failure_ = message;
  is_failure_whole_ = true;
}

void GlooMesh::abort(const std::string& reason) { end_all(reason, true); }

void GlooMesh::end_all(const std::string& reason, bool is_abort) {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  failure_ = reason;
  is_aborted_ = is_abort;
  for (c10d::Work* work : waiting_) work->abort();
}

}  // namespace layline::trainer::comm
