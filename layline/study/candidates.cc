#include "layline/study/candidates.h"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for_each.h>

#include <algorithm>
#include <array>
#include <map>

#include "layline/layout/layout_text.h"
#include "layline/search/enumerate.h"

namespace layline::study {
namespace {

using layout::Layout;
using search::PricedLayout;

using Key = std::array<int64_t, 7>;

Key key_of(const Layout& layout) {
  return {layout.tp,  layout.pp, layout.cp, layout.mb, layout.sp ? 1 : 0, static_cast<int64_t>(layout.checkpointing),
          layout.zero};
}

bool is_smaller(const PricedLayout& a, const PricedLayout& b) {
  if (a.price.peak_memory_bytes != b.price.peak_memory_bytes) {
    return a.price.peak_memory_bytes < b.price.peak_memory_bytes;
  }
  return layout::to_text(a.layout) < layout::to_text(b.layout);
}

// Fitting ones before misses, then the fastest or the smallest.
bool is_better(const PricedLayout& a, const PricedLayout& b) {
  if (a.price.fits != b.price.fits) return a.price.fits;
  return a.price.fits ? search::is_faster(a, b) : is_smaller(a, b);
}

struct Findings {
  explicit Findings(const spec::Job& job) : pricer(job), slack(search::micro_batch_memory_slack(job.engine)) {}

  search::Visit visit(const Layout& layout) {
    PricedLayout priced{layout, pricer.price(layout), std::nullopt};
    const bool fits = priced.price.fits;
    const bool is_near = priced.price.peak_memory_bytes <= priced.price.capacity_bytes * slack;
    ++num_legal;
    num_fit += fits ? 1 : 0;
    keep(key_of(layout), std::move(priced));
    return fits || is_near ? search::Visit::kNext : search::Visit::kSkipLargerMicroBatches;
  }

  void keep(const Key& key, PricedLayout priced) {
    const auto [place, is_new] = best.try_emplace(key, priced);
    if (!is_new && is_better(priced, place->second)) place->second = std::move(priced);
  }

  cost::Pricer pricer;
  double slack;
  std::map<Key, PricedLayout> best;
  int64_t num_legal = 0, num_fit = 0;
};

void sort_into(Candidates& candidates, PricedLayout priced) {
  (priced.price.fits ? candidates.fitting : candidates.misses).push_back(std::move(priced));
}

void sort(Candidates& candidates) {
  std::sort(candidates.fitting.begin(), candidates.fitting.end(), search::is_faster);
  std::sort(candidates.misses.begin(), candidates.misses.end(), is_smaller);
}

}  // namespace

Candidates find_candidates(const spec::Job& job) {
  const std::vector<search::Mesh> tasks = search::meshes(job, {});
  tbb::enumerable_thread_specific<Findings> threads([&] { return Findings(job); });
  tbb::parallel_for_each(tasks.begin(), tasks.end(), [&](const search::Mesh& mesh) {
    Findings& found = threads.local();
    search::for_each_layout(
        job, {}, mesh, [&](const Layout& layout) { return found.visit(layout); },
        [&](const Layout&) { ++found.num_legal; });
  });
  // A mesh has its keys to itself, so that no two threads have found the same one.
  Candidates candidates;
  for (Findings& found : threads) {
    candidates.num_legal += found.num_legal;
    candidates.num_fit += found.num_fit;
    for (auto& [key, priced] : found.best) sort_into(candidates, std::move(priced));
  }
  sort(candidates);
  return candidates;
}

Candidates price_all(const spec::Job& job, const std::vector<Layout>& layouts) {
  cost::Pricer pricer(job);
  Candidates candidates;
  for (const Layout& layout : layouts) {
    sort_into(candidates, {layout, pricer.price(layout), std::nullopt});
  }
  sort(candidates);
  candidates.num_legal = static_cast<int64_t>(layouts.size());
  candidates.num_fit = static_cast<int64_t>(candidates.fitting.size());
  return candidates;
}

}  // namespace layline::study
