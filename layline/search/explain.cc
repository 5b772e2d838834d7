#include "layline/search/explain.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "layline/base/units.h"
#include "layline/layout/legality.h"

namespace layline::search {
namespace {

using cost::Kind;

double ideal_attention_seconds(const spec::Job& job, double flops_per_second) {
  const double per_token = 12.0 * static_cast<double>(job.model.num_layers) *
                           static_cast<double>(job.model.attention_width()) * static_cast<double>(job.sequence_length);
  return per_token * job.tokens_per_step() / flops_per_second;
}

std::vector<Loss> losses_of(const spec::Job& job, const cost::StepPrice& price, double ideal_seconds) {
  const double peak = cost::peak_flops_per_second(job);
  const double ideal_attention = ideal_attention_seconds(job, peak);
  std::vector<Loss> losses;
  for (size_t i = 0; i < cost::kNumKinds; ++i) {
    double seconds = price.seconds[i];
    if (static_cast<Kind>(i) == Kind::kGemm) seconds -= ideal_seconds - ideal_attention;
    if (static_cast<Kind>(i) == Kind::kAttention) seconds -= ideal_attention;
    if (seconds != 0) losses.push_back({cost::kKindNames[i], seconds, seconds / price.step_seconds});
  }
  std::stable_sort(losses.begin(), losses.end(), [](const Loss& a, const Loss& b) { return a.seconds > b.seconds; });
  return losses;
}

double stage_seconds(const cost::StagePrice& stage) { return stage.forward_seconds + stage.backward_seconds; }

void remark_stages(const spec::Job& job, const layout::Layout& layout, cost::Pricer& pricer, Explanation& explanation) {
  if (layout.pp == 1) return;
  const auto [fastest, slowest] =
      std::minmax_element(explanation.stages.begin(), explanation.stages.end(),
                          [](const auto& a, const auto& b) { return stage_seconds(a) < stage_seconds(b); });
  const double gap = stage_seconds(*slowest) / stage_seconds(*fastest) - 1;
  if (gap < 0.02) return;
  std::string remark = fmt::format("stage {} is the slow one: {} more a micro-batch than stage {}",
                                   slowest->group.first_rank, base::format_percent(gap, 0), fastest->group.first_rank);
  layout::Layout balanced = layout;
  balanced.split = layout::SplitKind::kBalanced;
  const double saved = explanation.priced.price.step_seconds - pricer.price(balanced).step_seconds;
  if (layout.split != layout::SplitKind::kBalanced && layout.vp == 1 &&
      saved > 0.001 * explanation.priced.price.step_seconds) {
    const auto& splits = job.engine.splits;
    const bool has = std::find(splits.begin(), splits.end(), layout::SplitKind::kBalanced) != splits.end();
    remark += fmt::format("; layers balanced by cost would save {} a step{}", base::format_seconds(saved),
                          has ? " (split=balanced)" : fmt::format(", but {} cannot", job.engine.title));
  }
  explanation.remarks.push_back(remark);
}

void remark_margin(const spec::Job& job, const layout::Layout& layout, cost::Pricer& pricer, Explanation& explanation) {
  const cost::StepPrice& price = explanation.priced.price;
  const double margin = price.capacity_bytes - price.peak_memory_bytes;
  if (margin < 0) {
    explanation.remarks.push_back(
        fmt::format("does not fit: {} GiB over on stage {}", base::format_gib(-margin), explanation.fullest_stage));
    return;
  }
  std::string remark = fmt::format("{} GiB to spare", base::format_gib(margin));
  layout::Layout larger = layout;
  larger.mb *= 2;
  if (layout::is_legal(larger, job)) {
    const double over = pricer.price(larger).peak_memory_bytes - price.capacity_bytes;
    remark += over > 0 ? fmt::format("; micro-batch {} would need {} GiB more than there is", larger.mb,
                                     base::format_gib(over))
                       : fmt::format("; micro-batch {} would fit too", larger.mb);
  }
  explanation.remarks.push_back(remark);
}

}  // namespace

Explanation explain(const spec::Job& job, const layout::Layout& layout) {
  cost::Pricer pricer(job);
  Explanation explanation;
  explanation.priced = {layout, pricer.price(layout), std::nullopt};
  const double step = explanation.priced.price.step_seconds;
  explanation.mfu = cost::model_flops_utilization(job, step);
  explanation.ideal_seconds = explanation.mfu * step;
  explanation.losses = losses_of(job, explanation.priced.price, explanation.ideal_seconds);
  explanation.stages = pricer.stages(layout);
  for (size_t i = 0; i < explanation.stages.size(); ++i) {
    const auto& stages = explanation.stages;
    if (stage_seconds(stages[i]) > stage_seconds(stages[explanation.slowest_stage])) explanation.slowest_stage = i;
    if (stages[i].memory.total() > stages[explanation.fullest_stage].memory.total()) explanation.fullest_stage = i;
  }
  remark_margin(job, layout, pricer, explanation);
  remark_stages(job, layout, pricer, explanation);
  return explanation;
}

Comparison compare(const Explanation& first, const Explanation& second) {
  Comparison comparison;
  for (size_t i = 0; i < cost::kNumKinds; ++i) {
    const double a = first.priced.price.seconds[i], b = second.priced.price.seconds[i];
    if (a != 0 || b != 0) comparison.seconds.push_back({cost::kKindNames[i], a, b});
  }
  const memory::StageMemory& m = first.stages[first.fullest_stage].memory;
  const memory::StageMemory& n = second.stages[second.fullest_stage].memory;
  for (size_t i = 0; i < memory::kNumTerms; ++i) {
    if (m.bytes[i] != 0 || n.bytes[i] != 0) comparison.bytes.push_back({memory::kTermNames[i], m.bytes[i], n.bytes[i]});
  }
  return comparison;
}

std::vector<std::string> reasons_to_win(const spec::Job& job, const Plan& plan) {
  if (plan.best.empty()) return {};
  const Explanation winner = explain(job, plan.best.front().layout);
  const layout::Layout& layout = winner.priced.layout;
  std::vector<std::string> reasons;
  std::vector<std::string> free_of;
  if (layout.tp == 1) free_of.emplace_back("no tensor-parallel traffic");
  if (layout.pp == 1) free_of.emplace_back("no pipeline bubble");
  if (layout.checkpointing == layout::Checkpointing::kNone) free_of.emplace_back("nothing recomputed");
  if (!free_of.empty()) reasons.push_back(fmt::format("{}", fmt::join(free_of, ", ")));
  if (!winner.losses.empty() && winner.losses.front().seconds > 0) {
    reasons.push_back(fmt::format("its largest loss is {}: {} points of MFU", winner.losses.front().what,
                                  base::format_percent_number(winner.losses.front().mfu)));
  }
  reasons.insert(reasons.end(), winner.remarks.begin(), winner.remarks.end());
  if (plan.best.size() > 1) {
    const Comparison against = compare(winner, explain(job, plan.best[1].layout));
    const auto largest = std::max_element(
        against.seconds.begin(), against.seconds.end(),
        [](const Difference& a, const Difference& b) { return a.second - a.first < b.second - b.first; });
    reasons.push_back(fmt::format("the second loses most on {}: {} more", largest->what,
                                  base::format_seconds(largest->second - largest->first)));
  }
  return reasons;
}

}  // namespace layline::search
