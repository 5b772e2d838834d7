#include "layline/sweep/similarity.h"

#include <algorithm>
#include <cmath>

namespace layline::sweep {
namespace {

// Two doublings, or two kinds that differ, leave 1/e: neighbours say much of each other, opposite corners little.
constexpr double kLength = 2;

double log2_of(int64_t count) { return std::log2(static_cast<double>(std::max<int64_t>(1, count))); }

}  // namespace

Setting setting_of(const spec::Job& job, const layout::Layout& layout) {
  Setting setting;
  setting.logarithms = {log2_of(job.model.hidden), log2_of(job.sequence_length), log2_of(job.num_gpus),
                        log2_of(layout.tp),        log2_of(layout.pp),           log2_of(layout.cp),
                        log2_of(layout.vp),        log2_of(layout.mb),           log2_of(layout.hsdp)};
  setting.kinds = {layout.sp ? 1 : 0,
                   layout.zero,
                   static_cast<int>(layout.checkpointing),
                   static_cast<int>(layout.schedule),
                   static_cast<int>(layout.attention),
                   static_cast<int>(layout.norm)};
  return setting;
}

double similarity(const Setting& a, const Setting& b) {
  double distance = 0;
  for (size_t i = 0; i < a.logarithms.size(); ++i) distance += std::abs(a.logarithms[i] - b.logarithms[i]);
  for (size_t i = 0; i < a.kinds.size(); ++i) distance += a.kinds[i] != b.kinds[i] ? 1 : 0;
  return std::exp(-distance / kLength);
}

}  // namespace layline::sweep
