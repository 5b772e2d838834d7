#include "layline/schedule/one_f_one_b.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace layline::schedule {
namespace {

// Parts 1 and 3 of the path, for a run: the best over turning points b in it, counted from rank 0 on.
struct Turn {
  double with_extra_forwards = 0;   // Σ_{j≤b} T_j + 2bc + (p − 1 − b)·max_{j≤b} F_j
  double with_extra_backwards = 0;  // Σ_{j≤b} T_j + 2bc + (p − 1 − b)·max_{j≤b} B_j
};

int64_t num_stages(std::span<const StageRun> runs) {
  int64_t total = 0;
  for (const StageRun& run : runs) total += run.num_stages;
  return total;
}

// Within a run the terms are linear in b, so its first and last stage suffice.
std::vector<Turn> best_turns(std::span<const StageRun> runs, int64_t p, double transfer_seconds) {
  std::vector<Turn> turns;
  turns.reserve(runs.size());
  double total = 0, slowest_forward = 0, slowest_backward = 0;
  int64_t first = 0;
  for (const StageRun& run : runs) {
    slowest_forward = std::max(slowest_forward, run.time.forward);
    slowest_backward = std::max(slowest_backward, run.time.backward);
    Turn turn;
    for (const int64_t b : {first, first + run.num_stages - 1}) {
      const double down = total + static_cast<double>(b - first + 1) * (run.time.forward + run.time.backward) +
                          2 * static_cast<double>(b) * transfer_seconds;
      const double extra = static_cast<double>(p - 1 - b);
      turn.with_extra_forwards = std::max(turn.with_extra_forwards, down + extra * slowest_forward);
      turn.with_extra_backwards = std::max(turn.with_extra_backwards, down + extra * slowest_backward);
    }
    turns.push_back(turn);
    total += static_cast<double>(run.num_stages) * (run.time.forward + run.time.backward);
    first += run.num_stages;
  }
  for (size_t i = turns.size() - 1; i-- > 0;) {
    turns[i].with_extra_forwards = std::max(turns[i].with_extra_forwards, turns[i + 1].with_extra_forwards);
    turns[i].with_extra_backwards = std::max(turns[i].with_extra_backwards, turns[i + 1].with_extra_backwards);
  }
  return turns;
}

}  // namespace

double one_f_one_b_seconds(std::span<const StageRun> runs, int64_t micro_batches, double transfer_seconds) {
  const int64_t p = num_stages(runs);
  assert(micro_batches > p && p >= 1);
  const std::vector<Turn> turns = best_turns(runs, p, transfer_seconds);
  double best = 0, before = 0;
  int64_t first = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    // The first stage of a run is its best s: it has the most turning points behind it, and all else is the same.
    const double stage = runs[i].time.forward + runs[i].time.backward;
    const double loops = static_cast<double>(micro_batches - 1 - (p - first));
    const double twice_before = before + 2 * static_cast<double>(first) * transfer_seconds;
    best = std::max(best, turns[i].with_extra_forwards + turns[i].with_extra_backwards - twice_before + loops * stage);
    before += static_cast<double>(runs[i].num_stages) * stage;
    first += runs[i].num_stages;
  }
  return best;
}

double one_f_one_b_seconds_step_by_step(std::span<const StageRun> runs, int64_t micro_batches,
                                        double transfer_seconds) {
  const int64_t p = num_stages(runs), m = micro_batches;
  std::vector<StageTime> times;
  for (const StageRun& run : runs) times.insert(times.end(), static_cast<size_t>(run.num_stages), run.time);
  std::vector<double> now(static_cast<size_t>(p), 0);               // when each rank is free
  std::vector<double> forward_ends(static_cast<size_t>(p * m), 0);  // [rank][micro-batch]
  for (int64_t round = 0; round < m; ++round) {
    // Each rank's forwards up to the one before its backward of micro-batch `round`, then those backwards.
    for (int64_t i = 0; i < p; ++i) {
      const int64_t in_flight = std::min(p - i, m);
      for (int64_t k = round == 0 ? 0 : round + in_flight - 1; k < std::min(m, round + in_flight); ++k) {
        double& time = now[static_cast<size_t>(i)];
        if (i > 0) time = std::max(time, forward_ends[static_cast<size_t>((i - 1) * m + k)] + transfer_seconds);
        time += times[static_cast<size_t>(i)].forward;
        forward_ends[static_cast<size_t>(i * m + k)] = time;
      }
    }
    for (int64_t i = p - 1; i >= 0; --i) {
      double& time = now[static_cast<size_t>(i)];
      if (i + 1 < p) time = std::max(time, now[static_cast<size_t>(i + 1)] + transfer_seconds);
      time += times[static_cast<size_t>(i)].backward;
    }
  }
  return now.front();
}

}  // namespace layline::schedule
