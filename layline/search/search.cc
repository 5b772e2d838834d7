#include "layline/search/search.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for_each.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "layline/layout/legality.h"
#include "layline/search/default_layout.h"
#include "layline/search/enumerate.h"
#include "layline/search/measured.h"
#include "layline/search/refine.h"
#include "layline/search/remedies.h"

namespace layline::search {
namespace {

constexpr size_t kMisses = 5;

bool is_nearer(const PricedLayout& a, const PricedLayout& b) {
  if (a.price.peak_memory_bytes != b.price.peak_memory_bytes) {
    return a.price.peak_memory_bytes < b.price.peak_memory_bytes;
  }
  return layout::to_text(a.layout) < layout::to_text(b.layout);
}

// The first `limit` entries in the order of `before`.
template <typename Before>
class Leaders {
 public:
  Leaders(size_t limit, Before before) : limit_(limit), before_(before) {}

  void offer(const layout::Layout& layout, const cost::StepPrice& price) {
    PricedLayout candidate{layout, price, std::nullopt};
    if (entries_.size() == limit_ && (limit_ == 0 || !before_(candidate, entries_.back()))) return;
    const auto place = std::lower_bound(entries_.begin(), entries_.end(), candidate, before_);
    entries_.insert(place, std::move(candidate));
    if (entries_.size() > limit_) entries_.pop_back();
  }
  const std::vector<PricedLayout>& entries() const { return entries_; }

 private:
  size_t limit_;
  Before before_;
  std::vector<PricedLayout> entries_;
};

// Layouts that no other beats in both time and memory, fastest first.
class ParetoFront {
 public:
  void offer(const layout::Layout& layout, const cost::StepPrice& price) {
    const auto slower =
        std::upper_bound(front_.begin(), front_.end(), price.step_seconds,
                         [](double seconds, const PricedLayout& entry) { return seconds < entry.price.step_seconds; });
    if (slower != front_.begin() && std::prev(slower)->price.peak_memory_bytes <= price.peak_memory_bytes) {
      PricedLayout candidate{layout, price, std::nullopt};
      PricedLayout& kept = *std::prev(slower);
      const bool is_tie =
          kept.price.step_seconds == price.step_seconds && kept.price.peak_memory_bytes == price.peak_memory_bytes;
      if (is_tie && is_faster(candidate, kept)) kept = std::move(candidate);
      return;
    }
    auto last = slower;
    while (last != front_.end() && last->price.peak_memory_bytes >= price.peak_memory_bytes) ++last;
    front_.insert(front_.erase(slower, last), PricedLayout{layout, price, std::nullopt});
  }
  const std::vector<PricedLayout>& entries() const { return front_; }

 private:
  std::vector<PricedLayout> front_;
};

using BeforeFunction = bool (*)(const PricedLayout&, const PricedLayout&);

// What one thread has found.
struct Findings {
  explicit Findings(const spec::Job& job, size_t top)
      : pricer(job), best(top, is_faster), misses(kMisses, is_nearer), slack(micro_batch_memory_slack(job.engine)) {}

  cost::Pricer pricer;
  Leaders<BeforeFunction> best, misses;
  ParetoFront pareto;
  int64_t num_priced = 0, num_pruned = 0, num_fit = 0;
  double slack;

  Visit price(const layout::Layout& layout, bool prune) {
    const cost::StepPrice price = pricer.price(layout);
    ++num_priced;
    if (!price.fits) {
      misses.offer(layout, price);
      const bool is_near = price.peak_memory_bytes <= price.capacity_bytes * slack;
      return prune && !is_near ? Visit::kSkipLargerMicroBatches : Visit::kNext;
    }
    ++num_fit;
    best.offer(layout, price);
    pareto.offer(layout, price);
    return Visit::kNext;
  }
};

Plan merged(const tbb::enumerable_thread_specific<Findings>& threads, size_t top) {
  Plan plan;
  Leaders<BeforeFunction> best(top, is_faster), misses(kMisses, is_nearer);
  std::vector<PricedLayout> candidates;
  for (const Findings& found : threads) {
    plan.num_priced += found.num_priced;
    plan.num_pruned += found.num_pruned;
    plan.num_fit += found.num_fit;
    for (const PricedLayout& entry : found.best.entries()) best.offer(entry.layout, entry.price);
    for (const PricedLayout& entry : found.misses.entries()) misses.offer(entry.layout, entry.price);
    candidates.insert(candidates.end(), found.pareto.entries().begin(), found.pareto.entries().end());
  }
  // In one fixed order, so that ties do not depend on which thread came first.
  std::sort(candidates.begin(), candidates.end(), is_faster);
  ParetoFront pareto;
  for (const PricedLayout& entry : candidates) pareto.offer(entry.layout, entry.price);
  plan.num_legal = plan.num_priced + plan.num_pruned;
  plan.best = best.entries();
  plan.pareto = pareto.entries();
  if (plan.num_fit == 0) plan.nearest_misses = misses.entries();
  return plan;
}

// Why no layout is legal: the rule that most of the attempts broke.
std::string most_broken_rule(const spec::Job& job, const layout::LayoutConstraints& fix) {
  std::map<std::string, int64_t> reasons;
  layout::Layout layout;
  for (const int64_t tp : divisors(job.num_gpus)) {
    for (const int64_t pp : divisors(job.num_gpus / tp)) {
      layout.tp = fix.tp.value_or(tp);
      layout.pp = fix.pp.value_or(pp);
      layout.cp = fix.cp.value_or(1);
      layout.vp = fix.vp.value_or(1);
      layout.mb = fix.mb.value_or(1);
      layout.dp = fix.dp.value_or(std::max<int64_t>(1, job.num_gpus / (layout.tp * layout.pp * layout.cp)));
      layout.sp = fix.sp.value_or(job.engine.sequence_parallel_always && layout.tp > 1);
      layout.zero = fix.zero.value_or(job.engine.zero_stages.front());
      layout.hsdp = fix.hsdp.value_or(0);
      layout.checkpointing = fix.checkpointing.value_or(layout::Checkpointing::kNone);
      layout.schedule =
          fix.schedule.value_or(layout.vp > 1 ? layout::ScheduleKind::kInterleaved : layout::ScheduleKind::kOneFOneB);
      layout.split = fix.split.value_or(job.engine.default_split);
      layout.explicit_split = fix.explicit_split;
      layout.attention = fix.attention.value_or(job.engine.default_attention);
      layout.norm = fix.norm.value_or(job.engine.default_norm);
      const layout::Legality legality = layout::legality(layout, job);
      if (!legality.legal) ++reasons[legality.reason];
    }
  }
  const auto most = std::max_element(reasons.begin(), reasons.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == reasons.end() ? "no layout of these axes exists" : most->first;
}

}  // namespace

bool is_faster(const PricedLayout& a, const PricedLayout& b) {
  if (a.price.step_seconds != b.price.step_seconds) return a.price.step_seconds < b.price.step_seconds;
  if (a.price.peak_memory_bytes != b.price.peak_memory_bytes) {
    return a.price.peak_memory_bytes < b.price.peak_memory_bytes;
  }
  return layout::to_text(a.layout) < layout::to_text(b.layout);
}

Plan find_plan(const spec::Job& job, const SearchOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Mesh> tasks = meshes(job, options.fix);
  tbb::enumerable_thread_specific<Findings> threads([&] { return Findings(job, options.top); });
  tbb::parallel_for_each(tasks.begin(), tasks.end(), [&](const Mesh& mesh) {
    Findings& found = threads.local();
    for_each_layout(
        job, options.fix, mesh, [&](const layout::Layout& layout) { return found.price(layout, options.prune); },
        [&](const layout::Layout&) { ++found.num_pruned; });
  });
  Plan plan = merged(threads, options.top);
  cost::Pricer pricer(job);
  if (options.refine) refine(job, options.fix, options.top, pricer, plan.best);
  put_measured(job, options.fix, options.top, pricer, plan.best);
  plan.default_layout = default_layout(job, pricer);
  plan.search_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (plan.num_legal == 0) plan.why_none_is_legal = most_broken_rule(job, options.fix);
  if (plan.best.empty() && options.remedies && plan.num_legal > 0) plan.remedies = find_remedies(job, options);
  return plan;
}

}  // namespace layline::search
