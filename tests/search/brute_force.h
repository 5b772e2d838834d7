// The slow, plain truth about a search: nested loops over every axis, one legality check and one price a layout.
#pragma once

#include <algorithm>
#include <vector>

#include "layline/layout/legality.h"
#include "layline/search/search.h"

namespace layline::search {

struct BruteForce {
  std::vector<PricedLayout> legal;    // all of them, priced
  std::vector<PricedLayout> fitting;  // fastest first
  std::vector<PricedLayout> front;    // of fitting, what no other beats in time and memory
};

// What a search leaves out on purpose unless it is fixed (see enumerate.h).
inline bool can_win(const layout::Layout& layout, const layout::LayoutConstraints& fix, const spec::Job& job) {
  const auto best_of = [](const auto& kernels) { return *std::min_element(kernels.begin(), kernels.end()); };
  if (!fix.attention && layout.attention != best_of(job.engine.attention_kernels)) return false;
  if (!fix.norm && layout.norm != best_of(job.engine.norm_kernels)) return false;
  if (!fix.split && layout.split != job.engine.default_split) return false;
  if (!fix.checkpointing && layout.full_layers != 0) return false;
  if (!fix.schedule && layout.schedule == layout::ScheduleKind::kGpipe) return false;
  if (!fix.schedule && layout.pp == 1 && layout.schedule == layout::ScheduleKind::kZeroBubble) return false;
  if (!fix.zero && layout.hsdp != 0) return layout.hsdp > 1 && layout.hsdp < layout.dp;
  return true;
}

inline std::vector<layout::Layout> legal_layouts(const spec::Job& job, const layout::LayoutConstraints& fix) {
  using namespace layout;
  std::vector<Layout> found;
  Layout l;
  const auto offer = [&] {
    if (fix.matches(l) && is_legal(l, job) && can_win(l, fix, job)) found.push_back(l);
  };
  const auto kernels = [&] {
    for (const auto attention : job.engine.attention_kernels) {
      for (const auto norm : job.engine.norm_kernels) {
        for (const auto split : job.engine.splits) {
          l.attention = attention;
          l.norm = norm;
          l.split = split;
          if (split != SplitKind::kExplicit) offer();
        }
      }
    }
  };
  const auto sharding = [&] {
    for (l.zero = 0; l.zero <= 3; ++l.zero) {
      for (l.hsdp = 0; l.hsdp <= (l.zero == 3 ? l.dp : 0); ++l.hsdp) kernels();
    }
    l.zero = 1;
    l.hsdp = 0;
  };
  const auto within_a_mesh = [&] {
    for (l.vp = 1; l.vp * l.pp <= job.model.num_layers; ++l.vp) {
      for (l.mb = 1; l.mb * l.dp <= job.global_batch; ++l.mb) {
        if (job.global_batch % (l.mb * l.dp) != 0) continue;
        for (const bool sp : {false, true}) {
          if (sp && l.tp == 1) continue;  // layouts never say it
          l.sp = sp;
          for (const auto schedule : job.engine.schedules) {
            for (const auto checkpointing : job.engine.checkpointing) {
              l.schedule = schedule;
              l.checkpointing = checkpointing;
              sharding();
            }
          }
        }
      }
    }
  };
  for (l.tp = 1; l.tp <= job.num_gpus; ++l.tp) {
    for (l.cp = 1; l.cp * l.tp <= job.num_gpus; ++l.cp) {
      for (l.pp = 1; l.pp * l.cp * l.tp <= job.num_gpus; ++l.pp) {
        if (job.num_gpus % (l.tp * l.cp * l.pp) != 0) continue;
        l.dp = job.num_gpus / (l.tp * l.cp * l.pp);
        within_a_mesh();
      }
    }
  }
  return found;
}

inline bool beats(const PricedLayout& a, const PricedLayout& b) {
  return is_faster(a, b) && a.price.peak_memory_bytes <= b.price.peak_memory_bytes;
}

inline BruteForce brute_force(const spec::Job& job, const layout::LayoutConstraints& fix) {
  BruteForce result;
  for (const layout::Layout& layout : legal_layouts(job, fix)) {
    result.legal.push_back({layout, cost::Pricer(job).price(layout), std::nullopt});
  }
  for (const PricedLayout& entry : result.legal) {
    if (entry.price.fits) result.fitting.push_back(entry);
  }
  std::sort(result.fitting.begin(), result.fitting.end(), is_faster);
  for (const PricedLayout& entry : result.fitting) {
    const bool beaten = std::any_of(result.front.begin(), result.front.end(),
                                    [&](const PricedLayout& other) { return beats(other, entry); });
    if (!beaten) result.front.push_back(entry);
  }
  return result;
}

}  // namespace layline::search
