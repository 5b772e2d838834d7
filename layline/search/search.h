// From a job to its fastest layouts.
//
//   Plan plan = find_plan(job, {.fix = layout::parse_constraints("tp2"), .top = 10});
//   if (plan.best.empty()) … plan.nearest_misses, plan.remedies …
//
// Every legal layout is either priced or pruned by a rule that cannot lose one that fits: with all else equal the peak
// memory never falls when the micro-batch grows (in-flight sequences min((p-i)·mb, batch/dp) and all transient terms
// are non-decreasing in it; balanced splits and rounded interleaved groups are not pruned), so what follows a
// micro-batch that does not fit does not fit either.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layline/cost/step.h"
#include "layline/layout/layout.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/job.h"

namespace layline::search {

struct SearchOptions {
  layout::LayoutConstraints fix;
  size_t top = 10;       // layouts in Plan::best
  bool prune = true;     // false: price every legal layout (brute force)
  bool refine = true;    // try other splits and ckpt=full:K on the best ones
  bool remedies = true;  // when nothing fits, look for what would
};

struct PricedLayout {
  layout::Layout layout;
  cost::StepPrice price;
  std::optional<double> measured_seconds;  // of a real step of this job and layout, see measured.h
};

// A change to the job that makes something fit.
struct Remedy {
  std::string change;   // "48 GPUs", "sequences of 1,536 tokens", "ZeRO-3"
  PricedLayout layout;  // the fastest that then fits
};

struct Plan {
  int64_t num_legal = 0;
  int64_t num_priced = 0;  // legal layouts whose step was priced
  int64_t num_pruned = 0;  // legal layouts known not to fit without pricing; num_legal = num_priced + num_pruned
  int64_t num_fit = 0;
  double search_seconds = 0;
  std::vector<PricedLayout> best;              // that fit, fastest first; measured ones by their real time
  std::vector<PricedLayout> pareto;            // that fit, none both faster and smaller; fastest first
  std::vector<PricedLayout> nearest_misses;    // that do not fit, least over first; only when nothing fits
  std::vector<Remedy> remedies;                // only when nothing fits
  std::optional<PricedLayout> default_layout;  // what people start with today, see default_layout.h; legal, may not fit
  std::string why_none_is_legal;               // set when num_legal is 0
};

Plan find_plan(const spec::Job& job, const SearchOptions& options);

// Whether a is ranked before b: by step time, then by canonical text, so that results do not depend on the order of
// work.
bool is_faster(const PricedLayout& a, const PricedLayout& b);

}  // namespace layline::search
