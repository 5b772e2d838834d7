#include "layline/search/default_layout.h"

#include <algorithm>

#include "layline/layout/legality.h"
#include "layline/search/enumerate.h"

namespace layline::search {
namespace {

using layout::Layout;

constexpr double kBytesPerParameter = 18;
constexpr double kMemoryShare = 0.75;
constexpr int64_t kLargestMicroBatch = 8;

bool states_fit(const spec::Job& job, int64_t parts) {
  const double bytes =
      kBytesPerParameter * static_cast<double>(job.model.num_parameters()) / static_cast<double>(parts);
  return bytes <= kMemoryShare * job.cluster.gpu.memory_bytes;
}

// The frame of axes that the rules choose, before micro-batch and recomputation.
std::optional<Layout> axes(const spec::Job& job) {
  Layout layout;
  layout.split = job.engine.default_split;
  layout.attention = *std::min_element(job.engine.attention_kernels.begin(), job.engine.attention_kernels.end());
  layout.norm = *std::min_element(job.engine.norm_kernels.begin(), job.engine.norm_kernels.end());
  const auto& stages = job.engine.zero_stages;
  const bool has_zero1 = std::find(stages.begin(), stages.end(), 1) != stages.end();
  layout.zero = has_zero1 ? 1 : *std::max_element(stages.begin(), stages.end());
  const bool shards_all = layout.zero == 3;
  std::optional<Layout> last;
  for (const int64_t pp : divisors(job.num_gpus)) {
    for (const int64_t tp : divisors(job.num_gpus / pp)) {
      if (tp > job.cluster.gpus_per_node || (pp > 1 && tp * 2 <= job.cluster.gpus_per_node && tp < job.num_gpus / pp)) {
        continue;
      }
      layout.tp = tp;
      layout.pp = pp;
      layout.dp = job.num_gpus / (tp * pp);
      layout.sp = tp > 1 && (job.engine.sequence_parallel_always || job.engine.has_sequence_parallel);
      layout.mb = 1;
      if (!layout::is_legal(layout, job)) continue;
      last = layout;
      if (states_fit(job, shards_all ? job.num_gpus : tp * pp)) return layout;
    }
  }
  return last;
}

}  // namespace

std::optional<PricedLayout> default_layout(const spec::Job& job, cost::Pricer& pricer) {
  const std::optional<Layout> frame = axes(job);
  if (!frame) return std::nullopt;
  PricedLayout fallback{*frame, pricer.price(*frame), std::nullopt};
  for (const layout::Checkpointing checkpointing : {layout::Checkpointing::kNone, layout::Checkpointing::kFull}) {
    for (int64_t mb = kLargestMicroBatch; mb >= 1; mb /= 2) {
      Layout layout = *frame;
      layout.checkpointing = checkpointing;
      layout.mb = mb;
      if (!layout::is_legal(layout, job)) continue;
      const cost::StepPrice price = pricer.price(layout);
      if (price.fits) return PricedLayout{layout, price, std::nullopt};
      fallback = {layout, price, std::nullopt};
    }
  }
  return fallback;
}

}  // namespace layline::search
