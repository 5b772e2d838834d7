#include "layline/search/enumerate.h"

#include <algorithm>

#include "layline/layout/legality.h"

namespace layline::search {
namespace {

using layout::Checkpointing;
using layout::Layout;
using layout::LayoutConstraints;
using layout::ScheduleKind;

template <typename T>
std::vector<T> free_or_fixed(const std::optional<T>& fixed, std::vector<T> all) {
  return fixed ? std::vector<T>{*fixed} : std::move(all);
}

template <typename T>
bool contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// ZeRO stage and hsdp group that go together.
struct Sharding {
  int zero;
  int64_t hsdp;
};

std::vector<Sharding> shardings(const spec::Job& job, const LayoutConstraints& fix, int64_t dp) {
  if (fix.zero) return {{*fix.zero, fix.hsdp.value_or(0)}};
  std::vector<Sharding> result;
  for (const int stage : job.engine.zero_stages) result.push_back({stage, 0});
  if (job.engine.has_hybrid_sharding && contains(job.engine.zero_stages, 3)) {
    for (const int64_t group : divisors(dp)) {
      if (group > 1 && group < dp) result.push_back({3, group});
    }
  }
  return result;
}

// Checkpointing with its K.
struct Recompute {
  Checkpointing kind;
  int64_t full_layers;
};

std::vector<Recompute> recomputes(const spec::Job& job, const LayoutConstraints& fix) {
  if (fix.checkpointing) return {{*fix.checkpointing, fix.full_layers.value_or(0)}};
  std::vector<Recompute> result;
  for (const Checkpointing kind : job.engine.checkpointing) result.push_back({kind, 0});
  return result;
}

// The fastest kernel that the engine has: the enumerators are in that order.
template <typename Kernel>
Kernel best_of(const std::vector<Kernel>& kernels) {
  return *std::min_element(kernels.begin(), kernels.end());
}

std::vector<ScheduleKind> schedules(const spec::Job& job, const LayoutConstraints& fix, const Layout& layout) {
  if (fix.schedule) return {*fix.schedule};
  if (layout.vp > 1) return {ScheduleKind::kInterleaved};
  if (layout.pp > 1 && contains(job.engine.schedules, ScheduleKind::kZeroBubble)) {
    return {ScheduleKind::kOneFOneB, ScheduleKind::kZeroBubble};
  }
  return {ScheduleKind::kOneFOneB};
}

std::vector<int64_t> virtual_stages(const spec::Job& job, const LayoutConstraints& fix, int64_t pp) {
  if (fix.vp) return {*fix.vp};
  std::vector<int64_t> result = {1};
  if (!job.engine.has_virtual_stages || pp == 1) return result;
  for (int64_t vp = 2; vp * pp <= job.model.num_layers; ++vp) result.push_back(vp);
  return result;
}

// Whether the peak memory of a layout never falls when only its micro-batch grows. A balanced split follows the costs
// of the ends, which depend on the micro-batch; interleaved groups that do not divide are rounded.
bool memory_grows_with_micro_batch(const spec::Job& job, const Layout& layout) {
  const bool rounded = layout.schedule == ScheduleKind::kInterleaved && !job.engine.interleaved_needs_multiple_of_pp;
  return layout.split != layout::SplitKind::kBalanced && !rounded;
}

// Walks the micro-batches of a layout that is otherwise complete.
void walk_micro_batches(const spec::Job& job, const std::vector<int64_t>& sizes, Layout& layout,
                        const std::function<Visit(const Layout&)>& visit,
                        const std::function<void(const Layout&)>& skipped) {
  bool skipping = false;
  const bool may_skip = memory_grows_with_micro_batch(job, layout);
  for (const int64_t mb : sizes) {
    layout.mb = mb;
    if (!layout::is_legal(layout, job)) continue;
    if (skipping) {
      skipped(layout);
    } else {
      skipping = visit(layout) == Visit::kSkipLargerMicroBatches && may_skip;
    }
  }
}

}  // namespace

double micro_batch_memory_slack(const spec::Engine& engine) {
  constexpr double kOfOperators = 1.1;
  return engine.working_set == spec::WorkingSet::kOperators ? kOfOperators : 1;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> low, high;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::vector<Mesh> meshes(const spec::Job& job, const LayoutConstraints& fix) {
  const std::vector<int64_t> all = divisors(job.num_gpus);
  const auto one = std::vector<int64_t>{1};
  std::vector<Mesh> result;
  for (const int64_t tp : free_or_fixed(fix.tp, job.engine.has_tensor_parallel ? all : one)) {
    if (job.model.num_heads % tp != 0 || job.model.ffn_hidden % tp != 0) continue;
    for (const int64_t cp : free_or_fixed(fix.cp, job.engine.has_context_parallel ? all : one)) {
      if (cp > job.sequence_length) continue;
      for (const int64_t pp : free_or_fixed(fix.pp, job.engine.has_pipeline_parallel ? all : one)) {
        if (pp > job.model.num_layers || job.num_gpus % (tp * cp) != 0 || job.num_gpus / (tp * cp) % pp != 0) continue;
        const int64_t dp = job.num_gpus / (tp * cp * pp);
        if (fix.dp && *fix.dp != dp) continue;
        if (job.global_batch % dp == 0) result.push_back({dp, tp, cp, pp});
      }
    }
  }
  return result;
}

void for_each_layout(const spec::Job& job, const LayoutConstraints& fix, const Mesh& mesh,
                     const std::function<Visit(const Layout&)>& visit,
                     const std::function<void(const Layout&)>& skipped) {
  Layout layout;
  layout.dp = mesh.dp;
  layout.tp = mesh.tp;
  layout.cp = mesh.cp;
  layout.pp = mesh.pp;
  layout.ep = fix.ep.value_or(1);
  layout.split = fix.split.value_or(job.engine.default_split);
  layout.explicit_split = fix.explicit_split;
  layout.attention = fix.attention.value_or(best_of(job.engine.attention_kernels));
  layout.norm = fix.norm.value_or(best_of(job.engine.norm_kernels));
  const std::vector<int64_t> sizes = free_or_fixed(fix.mb, divisors(job.global_batch / mesh.dp));
  // At tp 1 sequence parallelism changes nothing; layouts never say it.
  const bool has_sp = mesh.tp > 1 && job.engine.has_sequence_parallel;
  const std::vector<bool> sp_choices = mesh.tp == 1 ? std::vector<bool>{false}
                                       : fix.sp     ? std::vector<bool>{*fix.sp}
                                       : has_sp     ? std::vector<bool>{false, true}
                                                    : std::vector<bool>{false};
  for (const bool sp : sp_choices) {
    layout.sp = sp;
    for (const Recompute recompute : recomputes(job, fix)) {
      layout.checkpointing = recompute.kind;
      layout.full_layers = recompute.full_layers;
      for (const int64_t vp : virtual_stages(job, fix, mesh.pp)) {
        layout.vp = vp;
        for (const ScheduleKind schedule : schedules(job, fix, layout)) {
          layout.schedule = schedule;
          for (const Sharding sharding : shardings(job, fix, mesh.dp)) {
            layout.zero = sharding.zero;
            layout.hsdp = sharding.hsdp;
            walk_micro_batches(job, sizes, layout, visit, skipped);
          }
        }
      }
    }
  }
}

}  // namespace layline::search
