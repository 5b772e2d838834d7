// The cores of this machine among the ranks on it, so that all of them together use each core once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace layline::trainer::comm {
class RunStore;
}

namespace layline::trainer::loop {

// This machine, and the cores of it that this process may use: "3f2a… 0-3,8".
std::string own_cores();

// How many of its cores a rank has to itself, where those that several ranks may use are divided among them: at least
// 1. `all` has an entry as of own_cores() for each rank, also for this one.
int64_t share_of_cores(const std::string& own, const std::vector<std::string>& all);

// Computes with that many threads from now on. Every rank calls it.
void use_share_of_cores(const comm::RunStore& store);

}  // namespace layline::trainer::loop
