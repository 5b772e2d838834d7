#include "layline/trainer/comm/rendezvous.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <future>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "layline/base/error.h"
#include "layline/trainer/comm/call.h"
#include "layline/trainer/comm/socket.h"

namespace layline::trainer::comm {

namespace {

using base::InputError;
using std::chrono::milliseconds;

double seconds(milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::string first_line(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

c10::intrusive_ptr<c10d::Store> open_store(const Rendezvous& rendezvous, int listening, milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(rendezvous.port);
  options.isServer = listening >= 0;
  options.waitWorkers = false;
  options.timeout = timeout;
  if (listening >= 0) options.masterListenFd = listening;
  return c10::make_intrusive<c10d::TCPStore>(rendezvous.host, options);
}

// libtorch waits for ever for an answer of a server that is none of its own.
c10::intrusive_ptr<c10d::Store> open_store_within(const Rendezvous& rendezvous, int listening, milliseconds limit) {
  const auto promise = std::make_shared<std::promise<c10::intrusive_ptr<c10d::Store>>>();
  std::thread([promise, rendezvous, listening, timeout = rendezvous.timeout] {
    try {
      promise->set_value(open_store(rendezvous, listening, timeout));
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  auto store = promise->get_future();
  if (store.wait_for(limit) == std::future_status::ready) return store.get();
  throw std::runtime_error(fmt::format("no answer within {:g} s", seconds(limit)));
}

uint64_t hash_of(std::string_view text) {  // FNV-1a: the same on every machine
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// What stands for an entry's text in the store; equal for equal texts only.
std::string shortened(const std::string& text) {
  constexpr size_t kLongest = 200, kShown = 60;
  if (text.size() <= kLongest) return text;
  return fmt::format("{}… ({} bytes, hash {:016x})", text.substr(0, kShown), text.size(), hash_of(text));
}

// Name and text of each entry as "<length> <bytes>".
std::string pack(const std::map<std::string, std::string>& entries) {
  std::string packed;
  for (const auto& [name, text] : entries) {
    const std::string value = shortened(text);
    packed += fmt::format("{} {}{} {}", name.size(), name, value.size(), value);
  }
  return packed;
}

std::map<std::string, std::string> unpack(const std::string& packed) {
  std::istringstream in(packed);
  const auto next = [&] {
    size_t length = 0;
    in >> length;
    in.get();
    std::string text(in ? length : 0, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text;
  };
  std::map<std::string, std::string> entries;
  while (in.peek() != std::istringstream::traits_type::eof()) {
    const std::string name = next();
    entries[name] = next();
  }
  return entries;
}

std::string shown(const std::map<std::string, std::string>& entries, const std::string& name) {
  const auto found = entries.find(name);
  return found == entries.end() ? "nothing" : fmt::format("\"{}\"", found->second);
}

// "" or in what this rank differs.
std::string difference(int64_t rank, const std::map<std::string, std::string>& own,
                       const std::map<std::string, std::string>& first) {
  std::map<std::string, std::string> names = own;
  names.insert(first.begin(), first.end());
  for (const auto& [name, text] : names) {
    const std::string mine = shown(own, name), theirs = shown(first, name);
    if (mine != theirs) return fmt::format("rank {} has {} {}, rank 0 has {}", rank, name, mine, theirs);
  }
  return "";
}

}  // namespace

RunStore::RunStore(const Rendezvous& rendezvous) : rendezvous_(rendezvous) {
  assert(rendezvous.rank >= 0 && rendezvous.rank < rendezvous.world_size);
  if (is_loopback(rendezvous_.host)) rendezvous_.host = "127.0.0.1";
  serve_or_reach();
  try {
    store_ = open_store_within(rendezvous_, listening_, rendezvous_.timeout + milliseconds(1000));
  } catch (const std::exception& error) {
    throw InputError(fmt::format("{}:{}", rendezvous_.host, rendezvous_.port),
                     fmt::format("what answers there is not this run's rank 0 ({})", first_line(error.what())));
  }
  join();
}

RunStore::~RunStore() = default;

c10::intrusive_ptr<c10d::Store> RunStore::connect(milliseconds timeout) const {
  try {
    return open_store(rendezvous_, -1, timeout);
  } catch (const std::exception& error) {
    throw base::RunError(fmt::format("{}:{}", rendezvous_.host, rendezvous_.port), first_line(error.what()));
  }
}

void RunStore::serve_or_reach() {
  const bool is_server = rendezvous_.rank == 0;
  if (is_server) {
    listening_ = listen_on(rendezvous_.port, is_loopback(rendezvous_.host));
    rendezvous_.port = port_of(listening_);
  }
  const milliseconds patience = is_server ? std::min(rendezvous_.timeout, milliseconds(5000)) : rendezvous_.timeout;
  const std::string reason = try_to_reach(rendezvous_.host, rendezvous_.port, patience);
  if (reason.empty()) return;
  const std::string where = fmt::format("{}:{}", rendezvous_.host, rendezvous_.port);
  if (is_server) {
    ::close(listening_);
    throw InputError(where, fmt::format("rank 0 serves on this machine but does not reach itself there ({}): the "
                                        "address must be one of the machine of rank 0",
                                        reason));
  }
  throw InputError(where,
                   fmt::format("rank {} could not reach rank 0 within {:g} s ({}): check that rank 0 is running, "
                               "that address and port are its own, and that no firewall is between",
                               rendezvous_.rank, seconds(rendezvous_.timeout), reason));
}

// Everyone says under its rank how it is reached and what it thinks the world's size is.
void RunStore::join() {
  const int64_t rank = rendezvous_.rank;
  const std::string where = fmt::format("{}:{}", rendezvous_.host, rendezvous_.port);
  if (store_->add(fmt::format("joined/{}", rank), 1) > 1) {
    throw InputError(where, fmt::format("rank {} has come twice: a rank was given to two processes, or two runs share "
                                        "this address and port",
                                        rank));
  }
  address_ = address_toward(rendezvous_.host);
  store_->set(fmt::format("address/{}", rank), address_);
  store_->set(fmt::format("world_size/{}", rank), std::to_string(rendezvous_.world_size));
  for (int64_t other = 0; other < rendezvous_.world_size; ++other) {
    const std::string size = wait_for("world_size", other);
    if (size != std::to_string(rendezvous_.world_size)) {
      leave_together("left_join");
      throw InputError(where, fmt::format("rank {} was started with world size {}, rank {} with {}", other, size, rank,
                                          rendezvous_.world_size));
    }
    // Rank 0 may know itself by the loopback; others need its address toward them.
    const std::string theirs = wait_for("address", other);
    if (is_loopback(address_) && !theirs.empty() && !is_loopback(theirs)) address_ = address_toward(theirs);
  }
}

std::string RunStore::wait_for(const std::string& kind, int64_t rank) {
  const std::string key = fmt::format("{}/{}", kind, rank);
  try {
    store_->wait({key}, rendezvous_.timeout);
    return store_->get_to_str(key);
  } catch (const std::exception& error) {
    std::vector<int64_t> missing;
    for (int64_t other = rank; other < rendezvous_.world_size; ++other) {
      try {
        if (!store_->check({fmt::format("{}/{}", kind, other)})) missing.push_back(other);
      } catch (const std::exception&) {  // rank 0 is gone
        throw InputError(fmt::format("{}:{}", rendezvous_.host, rendezvous_.port),
                         "rank 0 ended while the ranks came together; its own message says why");
      }
    }
    if (missing.empty()) missing.push_back(rank);
    throw InputError(fmt::format("{}:{}", rendezvous_.host, rendezvous_.port),
                     fmt::format("{} of {} did not come within {:g} s", describe_ranks(missing), rendezvous_.world_size,
                                 seconds(rendezvous_.timeout)));
  }
}

// Keeps rank 0's store up until all have read what they need from it.
void RunStore::leave_together(const std::string& kind) {
  const auto end = std::chrono::steady_clock::now() + milliseconds(3000);
  try {
    store_->set(fmt::format("{}/{}", kind, rendezvous_.rank), "");
    for (int64_t rank = 0; rendezvous_.rank == 0 && rank < rendezvous_.world_size; ++rank) {
      const auto left = std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
      store_->wait({fmt::format("{}/{}", kind, rank)}, std::max(left, milliseconds(1)));
    }
  } catch (const std::exception&) {  // who does not come any more needs nothing
  }
}

void RunStore::check_same(const std::map<std::string, std::string>& entries) {
  const int check = num_checks_++;
  const std::string kind = fmt::format("entries{}", check), verdict = fmt::format("verdict{}", check);
  const std::string own = pack(entries);
  store_->set(fmt::format("{}/{}", kind, rendezvous_.rank), own);
  const std::string found = difference(rendezvous_.rank, unpack(own), unpack(wait_for(kind, 0)));
  store_->set(fmt::format("{}/{}", verdict, rendezvous_.rank), found);
  std::string first;
  int64_t num_more = 0;
  for (int64_t rank = 0; rank < rendezvous_.world_size; ++rank) {
    const std::string theirs = wait_for(verdict, rank);
    if (theirs.empty()) continue;
    if (first.empty()) {
      first = theirs;
    } else {
      ++num_more;
    }
  }
  leave_together(fmt::format("left{}", check));
  if (first.empty()) return;
  if (num_more > 0) first += fmt::format(" ({} more ranks differ)", num_more);
  throw InputError("the ranks were started differently", first);
}

}  // namespace layline::trainer::comm
