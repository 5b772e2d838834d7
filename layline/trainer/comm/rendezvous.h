// How the ranks of a run find each other: a key-value store that rank 0 serves over TCP.
//
//   RunStore store({.rank = rank, .world_size = size, .host = "10.0.0.1", .port = 29500});  // all ranks, waits for all
//   store.check_same({{"layout", "dp2 tp2 pp1 mb4"}, {"seed", "1"}});
//   GlooFactory factory(store.store(), rank, size, {.timeout = 300s, .address = store.address()});
//
// What the user can mend is a base::InputError: a port in use, rank 0 out of reach, ranks that do not come, a rank or a
// world size given twice or differently, ranks that were started with different settings.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace c10d {
class Store;
}

namespace layline::trainer::comm {

struct Rendezvous {
  int64_t rank = 0;
  int64_t world_size = 1;
  std::string host = "127.0.0.1";  // of rank 0; on the loopback it serves the loopback only
  int port = 29500;                // 0 on rank 0: any free one
  std::chrono::milliseconds timeout = std::chrono::seconds(60);  // for rank 0 to answer, then for all ranks to come
};

class RunStore {
 public:
  // Serves on rank 0, connects, and returns when all ranks have come.
  explicit RunStore(const Rendezvous& rendezvous);
  ~RunStore();

  const c10::intrusive_ptr<c10d::Store>& store() const { return store_; }
  // A further connection, for another thread. Throws base::RunError.
  c10::intrusive_ptr<c10d::Store> connect(std::chrono::milliseconds timeout) const;

  const Rendezvous& rendezvous() const { return rendezvous_; }
  int port() const { return rendezvous_.port; }
  // This machine's address as the others reach it.
  const std::string& address() const { return address_; }

  // Compares entries, name → text, with those of rank 0. Every rank calls it; if any rank differs, all throw
  // base::InputError, which names the first that does, the entry and both texts (shortened).
  void check_same(const std::map<std::string, std::string>& entries);

 private:
  void serve_or_reach();
  void join();
  void leave_together(const std::string& kind);
  std::string wait_for(const std::string& kind, int64_t rank);

  Rendezvous rendezvous_;
  int listening_ = -1;  // rank 0's socket until the store takes it
  c10::intrusive_ptr<c10d::Store> store_;
  std::string address_;
  int num_checks_ = 0;
};

}  // namespace layline::trainer::comm
