#include "layline/search/measured.h"

#include <algorithm>
#include <string>

#include "layline/layout/legality.h"

namespace layline::search {
namespace {

double known_seconds(const PricedLayout& entry) { return entry.measured_seconds.value_or(entry.price.step_seconds); }

const spec::MeasuredJob* measured_job(const spec::Job& job) {
  const std::string key = spec::measured_job_key(job);
  const auto& measured = job.calibration.measured;
  const auto found =
      std::find_if(measured.begin(), measured.end(), [&](const auto& entry) { return entry.job == key; });
  return found == measured.end() ? nullptr : &*found;
}

// The best kernels that the search looks at unless others are fixed: a slower kernel's run says nothing to the plan.
bool is_searched(const spec::Job& job, const layout::LayoutConstraints& fix, const layout::Layout& layout) {
  const auto& attention = job.engine.attention_kernels;
  const auto& norm = job.engine.norm_kernels;
  return fix.matches(layout) &&
         (fix.attention || layout.attention == *std::min_element(attention.begin(), attention.end())) &&
         (fix.norm || layout.norm == *std::min_element(norm.begin(), norm.end()));
}

}  // namespace

void put_measured(const spec::Job& job, const layout::LayoutConstraints& fix, size_t top, cost::Pricer& pricer,
                  std::vector<PricedLayout>& best) {
  const spec::MeasuredJob* measured = measured_job(job);
  if (measured == nullptr) return;
  const layout::TextDefaults defaults = layout::text_defaults(job.engine);
  for (const auto& [text, seconds] : measured->step_seconds) {
    const layout::Layout layout = layout::parse_layout(text, {.num_gpus = job.num_gpus, .defaults = defaults});
    if (!layout::is_legal(layout, job) || !is_searched(job, fix, layout)) continue;
    auto entry = std::find_if(best.begin(), best.end(), [&](const PricedLayout& e) { return e.layout == layout; });
    if (entry == best.end()) entry = best.insert(best.end(), {layout, pricer.price(layout), std::nullopt});
    entry->measured_seconds = seconds;
  }
  std::stable_sort(best.begin(), best.end(),
                   [](const PricedLayout& a, const PricedLayout& b) { return known_seconds(a) < known_seconds(b); });
  if (best.size() > top) best.resize(top);
}

}  // namespace layline::search
