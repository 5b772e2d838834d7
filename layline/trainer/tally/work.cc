#include "layline/trainer/tally/work.h"

#include <chrono>
#include <utility>

namespace layline::trainer::tally {

namespace {

using Clock = std::chrono::steady_clock;

// Of a thread.
struct Ledger {
  Work work = Work::kOther;
  Clock::time_point since = Clock::now();
  WorkSeconds seconds{};

  // Charges what has passed, and goes on with `next`. Returns what was charged.
  Work change_to(Work next) {
    const Clock::time_point now = Clock::now();
    seconds[static_cast<size_t>(work)] += std::chrono::duration<double>(now - since).count();
    since = now;
    return std::exchange(work, next);
  }
};

thread_local Ledger ledger;

bool computes(Work work) {
  return work == Work::kMatrixMultiplication || work == Work::kAttention || work == Work::kMemoryBound;
}

}  // namespace

WorkScope::WorkScope(Work work)
    : outer_(ledger.change_to(ledger.work == Work::kRecomputation && computes(work) ? ledger.work : work)) {}
WorkScope::~WorkScope() { ledger.change_to(outer_); }

WorkSeconds take_work_seconds() {
  ledger.change_to(ledger.work);
  return std::exchange(ledger.seconds, {});
}

}  // namespace layline::trainer::tally
