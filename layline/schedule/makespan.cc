#include "layline/schedule/makespan.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "layline/schedule/one_f_one_b.h"

namespace layline::schedule {
namespace {

using Runs = std::span<const StageRun>;

double count(int64_t n) { return static_cast<double>(n); }

struct Extremes {
  StageTime sum, slowest, fastest;  // each member by itself; `weight` and input() too
  double slowest_input = 0, fastest_input = 0;
  double slowest_total = 0, fastest_total = 0;
};

Extremes extremes(Runs runs) {
  Extremes all;
  all.slowest = all.fastest = runs.front().time;
  all.slowest_input = all.fastest_input = runs.front().time.input();
  all.slowest_total = all.fastest_total = runs.front().time.forward + runs.front().time.backward;
  for (const auto& [time, n] : runs) {
    all.sum.forward += count(n) * time.forward;
    all.sum.backward += count(n) * time.backward;
    all.sum.weight += count(n) * time.weight;
    for (double StageTime::* part : {&StageTime::forward, &StageTime::backward, &StageTime::weight}) {
      all.slowest.*part = std::max(all.slowest.*part, time.*part);
      all.fastest.*part = std::min(all.fastest.*part, time.*part);
    }
    all.slowest_input = std::max(all.slowest_input, time.input());
    all.fastest_input = std::min(all.fastest_input, time.input());
    all.slowest_total = std::max(all.slowest_total, time.forward + time.backward);
    all.fastest_total = std::min(all.fastest_total, time.forward + time.backward);
  }
  return all;
}

bool is_equal(Runs runs) {
  const StageTime& first = runs.front().time;
  return std::all_of(runs.begin(), runs.end(), [&](const StageRun& run) {
    return run.time.forward == first.forward && run.time.backward == first.backward && run.time.weight == first.weight;
  });
}

// Sends become part of what is sent: all stages but the last send forward, all but the first backward.
std::vector<StageRun> with_sends(Runs runs, double seconds) {
  std::vector<StageRun> folded(runs.begin(), runs.end());
  if (folded.front().num_stages > 1) {
    folded.insert(folded.begin(), {folded.front().time, 1});
    --folded[1].num_stages;
  }
  if (folded.back().num_stages > 1) {
    folded.push_back({folded.back().time, 1});
    --folded[folded.size() - 2].num_stages;
  }
  for (size_t i = 0; i < folded.size(); ++i) {
    if (i + 1 < folded.size()) folded[i].time.forward += seconds;
    if (i > 0) folded[i].time.backward += seconds;
  }
  return folded;
}

Makespan exactly(double seconds) { return {seconds, seconds, seconds, true}; }

Makespan between(double lower, double upper, double estimate) {
  upper = std::max(lower, upper);
  return {lower, upper, std::clamp(estimate, lower, upper), false};
}

struct Problem {
  int64_t p, v, m;
  Runs runs;
  double c;  // seconds of a message beside the computation
};

Makespan gpipe(const Problem& at) {
  const Extremes all = extremes(at.runs);
  return exactly(all.sum.forward + all.sum.backward + count(at.m - 1) * (all.slowest.forward + all.slowest.backward) +
                 2 * count(at.p - 1) * at.c);
}

// Messages on the longest path of equal stages: every loop over n ranks has 2(n − 1) of them and takes n micro-batches.
double most_messages(int64_t p, int64_t m) { return 2 * count(p - 1 + (m - 1) - (m - 1 + p - 1) / p); }

Makespan one_f_one_b(const Problem& at) {
  const int64_t p = at.p, m = at.m;
  if (m <= p) return exactly(one_f_one_b_seconds_step_by_step(at.runs, m, at.c));
  const double computing = one_f_one_b_seconds(at.runs, m);
  if (at.c == 0 || p == 1) return exactly(computing);
  const double with_messages = computing + most_messages(p, m) * at.c;
  if (is_equal(at.runs)) return exactly(with_messages);
  const Extremes all = extremes(at.runs);
  // All the way down and up again, and one loop for the micro-batches that are left.
  const int64_t rounds = 1 + (m - 1) / p, left = (m - 1) % p;
  const double round_trips = count(rounds) * (all.sum.forward + all.sum.backward + 2 * count(p - 1) * at.c) +
                             count(left) * all.fastest_total + 2 * count(std::max<int64_t>(0, left - 1)) * at.c;
  const double lower = std::max(one_f_one_b_seconds(at.runs, m, at.c), round_trips);
  const double upper = std::min(with_messages, one_f_one_b_seconds(with_sends(at.runs, at.c), m));
  return between(lower, upper, (lower + upper) / 2);
}

// Of equal chunks, each of T seconds.
double equal_interleaved(const Problem& at, double chunk_seconds) {
  return count(std::max(at.m, at.p) * at.v + std::min(at.m, at.p) - 1) * chunk_seconds;
}

// For each rank: what comes before its first forward and after its last backward, and its own work.
double busiest_rank(const Problem& at, double& slowest_work) {
  std::vector<double> work(static_cast<size_t>(at.p), 0), ramp(static_cast<size_t>(at.p) + 1, 0);
  int64_t stage = 0;
  for (const auto& [time, n] : at.runs) {
    for (int64_t i = 0; i < n; ++i, ++stage) {
      const double seconds = time.forward + time.backward;
      work[static_cast<size_t>(stage % at.p)] += seconds;
      if (stage < at.p) {
        ramp[static_cast<size_t>(stage) + 1] = ramp[static_cast<size_t>(stage)] + seconds + 2 * at.c;
      }
    }
  }
  double longest = 0;
  for (size_t rank = 0; rank < work.size(); ++rank) {
    longest = std::max(longest, ramp[rank] + count(at.m) * work[rank]);
    slowest_work = std::max(slowest_work, work[rank]);
  }
  return longest;
}

Makespan interleaved(const Problem& at) {
  const Extremes all = extremes(at.runs);
  if (at.c == 0 && is_equal(at.runs)) return exactly(equal_interleaved(at, all.slowest_total));
  double slowest_work = 0;
  const double one_micro_batch = all.sum.forward + all.sum.backward + 2 * count(at.p * at.v - 1) * at.c;
  const double lower = std::max({equal_interleaved(at, all.fastest.forward + all.fastest.backward),
                                 busiest_rank(at, slowest_work), one_micro_batch});
  const double upper = equal_interleaved(at, all.slowest.forward + all.slowest.backward + 2 * at.c);
  const double others = all.sum.forward + all.sum.backward - slowest_work + 2 * count(at.p * at.v - 1) * at.c;
  return between(lower, upper, count(at.m) * slowest_work + others / count(at.v));
}

double equal_zero_bubble(const Problem& at, double forward, double input, double weight) {
  return count(at.m) * (forward + input + weight) + count(at.p - 1) * std::max(forward + input - weight, input);
}

// The first forward on the way to each rank, its work, and the way back of its last input gradient.
double busiest_zero_bubble_rank(const Problem& at) {
  double longest = 0, before_forward = 0, before_input = 0;
  for (const auto& [time, n] : at.runs) {
    for (int64_t i = 0; i < n; ++i) {
      const double work = time.forward + time.backward;
      longest = std::max(longest, before_forward + count(at.m) * work);
      longest = std::max(longest, before_forward + count(at.m) * (work - time.weight) + before_input);
      before_forward += time.forward + at.c;
      before_input += time.input() + at.c;
    }
  }
  return longest;
}

// How much later than 1F1B's last backward a rank may end. Forwards and input gradients are never later than in 1F1B,
// since fewer weight gradients go before them; but those that rank i puts off come after its last input gradient, while
// 1F1B's gradient goes on to rank 0.
double most_behind_one_f_one_b(const Problem& at) {
  double behind = 0, way_back = 0;
  int64_t rank = 0;
  for (const auto& [time, n] : at.runs) {
    for (int64_t i = 0; i < n; ++i, ++rank) {
      behind = std::max(behind, count(std::min(rank, at.m - 1)) * time.weight - way_back);
      way_back += time.backward + at.c;
    }
  }
  return behind;
}

Makespan zero_bubble(const Problem& at) {
  const Extremes all = extremes(at.runs);
  const double fastest = equal_zero_bubble(at, all.fastest.forward, all.fastest_input, all.fastest.weight);
  const bool is_exact_when_equal =
      at.m >= at.p && std::min(all.slowest.forward, all.slowest.weight) <= all.slowest_input;
  if (at.p == 1) return exactly(count(at.m) * (all.slowest.forward + all.slowest.backward));
  if (is_exact_when_equal && at.c == 0 && is_equal(at.runs)) return exactly(fastest);
  const double round_trip = all.sum.forward + all.sum.backward - all.sum.weight + 2 * count(at.p - 1) * at.c;
  const double lower = std::max({at.m >= at.p ? fastest : 0, busiest_zero_bubble_rank(at), round_trip});
  double upper = one_f_one_b(at).upper_seconds + most_behind_one_f_one_b(at);
  const double slowest_input = all.slowest_input + at.c, slowest_forward = all.slowest.forward + at.c;
  if (at.m >= at.p && std::min(slowest_forward, all.slowest.weight) <= slowest_input) {
    upper = std::min(upper, equal_zero_bubble(at, slowest_forward, slowest_input, all.slowest.weight));
  }
  const double bubble = round_trip - all.sum.weight - (all.slowest_total - 2 * all.slowest.weight);
  return between(lower, upper, count(at.m) * all.slowest_total + std::max(0.0, bubble));
}

}  // namespace

Makespan makespan(ScheduleKind kind, const PipelineShape& shape, Runs runs, const Transfer& transfer) {
  assert(!runs.empty() && shape.micro_batches >= 1);
  assert(transfer.mode == Transfers::kOverlapped || transfer.mode == Transfers::kExposed);
  Problem problem{shape.pp, shape.vp, shape.micro_batches, runs, shape.pp > 1 ? transfer.seconds : 0};
  std::vector<StageRun> folded;
  if (transfer.mode == Transfers::kExposed && problem.c > 0) {
    folded = with_sends(runs, problem.c);
    problem.runs = folded;
    problem.c = 0;
  }
  switch (kind) {
    case ScheduleKind::kGpipe:
      return gpipe(problem);
    case ScheduleKind::kZeroBubble:
      return zero_bubble(problem);
    case ScheduleKind::kInterleaved:
      return shape.vp == 1 ? one_f_one_b(problem) : interleaved(problem);
    case ScheduleKind::kOneFOneB:
      break;
  }
  return one_f_one_b(problem);
}

Makespan makespan(ScheduleKind kind, const PipelineShape& shape, const StageTimes& times, const Transfer& transfer) {
  std::vector<StageRun> runs;
  for (const StageTime& time : times) runs.push_back({time, 1});
  return makespan(kind, shape, runs, transfer);
}

}  // namespace layline::schedule
