// Runs a body once a rank over a kind of group, for tests that hold for every kind.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>

#include "layline/trainer/comm/group_factory.h"

namespace c10d {
class Store;
}

namespace layline::trainer::comm {

using RankBody = std::function<void(GroupFactory&)>;

struct Backend {
  const char* name;
  void (*run)(int64_t size, std::chrono::milliseconds timeout, const RankBody& body);
};
inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

// Ranks as threads, each with a mesh of its own.
void run_gloo_threads(int64_t size, std::chrono::milliseconds timeout, const RankBody& body);

// For ranks of one process.
c10::intrusive_ptr<c10d::Store> make_process_store();

double seconds_of(const std::function<void()>& body);

// What body throws as Error; a complaint if it throws nothing.
template <class Error>
std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace layline::trainer::comm
