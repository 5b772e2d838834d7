#include "tests/trainer/comm/backends.h"

#include <cstdlib>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "layline/trainer/comm/gloo_group.h"
#include "layline/trainer/comm/thread_group.h"

namespace layline::trainer::comm {

namespace {

// Before main makes any group.
[[maybe_unused]] const bool kIsPrepared = (prepare_process(), true);

}  // namespace

void run_gloo_threads(int64_t size, std::chrono::milliseconds timeout, const RankBody& body) {
  const auto store = make_process_store();
  run_as_threads(size, timeout, [&](GroupFactory& threads) {
    GlooFactory factory(store, threads.rank(), size, {.timeout = timeout, .address = "127.0.0.1", .activity = nullptr});
    body(factory);
    factory.make_world()->barrier();
  });
}

c10::intrusive_ptr<c10d::Store> make_process_store() { return c10::make_intrusive<c10d::HashStore>(); }

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace layline::trainer::comm
