#include "layline/trainer/loop/cores.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "layline/trainer/comm/rendezvous.h"

namespace layline::trainer::loop {

namespace {

// The same in all containers of a machine, where host names differ.
std::string machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return file >> id ? id : "unknown";
}

struct Cores {
  std::string machine;
  std::vector<int> numbers;
};

Cores parse(const std::string& text) {
  Cores cores;
  std::istringstream in(text);
  in >> cores.machine;
  for (int first = 0; in >> first; in.get()) {
    int last = first;
    if (in.peek() == '-') {
      in.get();
      in >> last;
    }
    for (int core = first; core <= last; ++core) cores.numbers.push_back(core);
  }
  return cores;
}

std::string key_of(int64_t rank) { return fmt::format("cores/{}", rank); }

}  // namespace

std::string own_cores() {
  cpu_set_t cores;
  std::string text;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_ZERO(&cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    const int first = core;
    while (core + 1 < CPU_SETSIZE && CPU_ISSET(core + 1, &cores)) ++core;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (core > first) text += fmt::format("-{}", core);
  }
  return machine() + " " + text;
}

int64_t share_of_cores(const std::string& own, const std::vector<std::string>& all) {
  const Cores mine = parse(own);
  std::map<int, int> num_users;  // by core of this machine
  for (const std::string& text : all) {
    const Cores cores = parse(text);
    if (cores.machine != mine.machine) continue;
    for (const int core : cores.numbers) ++num_users[core];
  }
  double share = 1e-9;
  for (const int core : mine.numbers) share += 1.0 / std::max(1, num_users[core]);
  return std::max<int64_t>(1, static_cast<int64_t>(share));
}

void use_share_of_cores(const comm::RunStore& store) {
  const int64_t num_ranks = store.rendezvous().world_size;
  const std::string own = own_cores();
  store.store()->set(key_of(store.rendezvous().rank), own);
  std::vector<std::string> keys, all;
  for (int64_t rank = 0; rank < num_ranks; ++rank) keys.push_back(key_of(rank));
  store.store()->wait(keys, store.rendezvous().timeout);
  for (const std::vector<uint8_t>& bytes : store.store()->multiGet(keys)) all.emplace_back(bytes.begin(), bytes.end());
  at::set_num_threads(static_cast<int>(share_of_cores(own, all)));
}

}  // namespace layline::trainer::loop
