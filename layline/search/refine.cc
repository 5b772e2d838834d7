#include "layline/search/refine.h"

#include <algorithm>

#include "layline/layout/legality.h"

namespace layline::search {
namespace {

using layout::Layout;

// Those that are faster; where layers divide evenly most splits are the same.
void add_other_splits(const spec::Job& job, const PricedLayout& entry, cost::Pricer& pricer,
                      std::vector<Layout>& candidates) {
  const Layout& base = entry.layout;
  if (base.pp == 1) return;
  for (const layout::SplitKind split : job.engine.splits) {
    if (split == base.split || split == layout::SplitKind::kExplicit) continue;
    Layout layout = base;
    layout.split = split;
    constexpr double kNoticeable = 1 - 1e-6;
    if (!layout::is_legal(layout, job)) continue;
    if (pricer.price(layout).step_seconds < kNoticeable * entry.price.step_seconds) candidates.push_back(layout);
  }
}

// The smallest K that fits; memory falls and time grows with K.
void add_partial_checkpointing(const spec::Job& job, const Layout& base, cost::Pricer& pricer,
                               std::vector<Layout>& candidates) {
  if (!job.engine.has_partial_checkpointing || base.checkpointing != layout::Checkpointing::kFull) return;
  Layout layout = base;
  int64_t low = 1, high = job.model.num_layers / base.num_virtual_stages();
  const auto fits = [&](int64_t layers) {
    layout.full_layers = layers;
    return pricer.price(layout).fits;
  };
  if (high < 2 || !fits(high - 1)) return;
  --high;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  layout.full_layers = low;
  if (layout::is_legal(layout, job)) candidates.push_back(layout);
}

}  // namespace

void refine(const spec::Job& job, const layout::LayoutConstraints& fix, size_t top, cost::Pricer& pricer,
            std::vector<PricedLayout>& best) {
  std::vector<Layout> candidates;
  for (const PricedLayout& entry : best) {
    if (!fix.split) add_other_splits(job, entry, pricer, candidates);
    if (!fix.checkpointing) add_partial_checkpointing(job, entry.layout, pricer, candidates);
  }
  for (const Layout& layout : candidates) {
    const cost::StepPrice price = pricer.price(layout);
    if (price.fits) best.push_back({layout, price, std::nullopt});
  }
  std::sort(best.begin(), best.end(), is_faster);
  best.erase(std::unique(best.begin(), best.end(),
                         [](const PricedLayout& a, const PricedLayout& b) { return a.layout == b.layout; }),
             best.end());
  if (best.size() > top) best.resize(top);
}

}  // namespace layline::search
