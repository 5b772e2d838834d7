#include "layline/search/search.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "layline/layout/layout_text.h"
#include "layline/layout/legality.h"
#include "layline/search/enumerate.h"
#include "tests/search/brute_force.h"
#include "tests/search/jobs.h"
#include "tests/support/jobs.h"

namespace layline::search {
namespace {

SearchOptions plain(const layout::LayoutConstraints& fix = {}) {
  SearchOptions options;
  options.fix = fix;
  options.refine = false;
  options.remedies = false;
  return options;
}

std::vector<std::string> texts(const std::vector<PricedLayout>& layouts) {
  std::vector<std::string> result;
  for (const PricedLayout& entry : layouts) result.push_back(layout::to_text(entry.layout));
  return result;
}

std::vector<std::string> first_texts(const std::vector<PricedLayout>& layouts, size_t count) {
  std::vector<std::string> result = texts(layouts);
  result.resize(std::min(count, result.size()));
  return result;
}

void show(const spec::Job& job, const layout::LayoutConstraints& fix = {}) {
  RC_LOG() << job.engine.name << " " << job.num_gpus << " GPUs of " << job.cluster.gpu.memory_bytes << " bytes, batch "
           << job.global_batch << ", sequence " << job.sequence_length << ", layers " << job.model.num_layers
           << ", heads " << job.model.num_heads << "/" << job.model.num_kv_heads << "x" << job.model.head_size
           << ", ffn " << job.model.ffn_hidden << ", vocab " << job.model.vocab << ", fix \"" << layout::to_text(fix)
           << "\"";
}

RC_GTEST_PROP(Search, FindsWhatABruteForceFinds, ()) {
  const spec::Job job = any_job();
  const layout::LayoutConstraints fix = any_constraints();
  show(job, fix);
  const BruteForce truth = brute_force(job, fix);
  RC_CLASSIFY(truth.legal.empty(), "none legal");
  RC_CLASSIFY(!truth.legal.empty() && truth.fitting.empty(), "none fits");
  const Plan plan = find_plan(job, plain(fix));
  RC_ASSERT(plan.num_legal == static_cast<int64_t>(truth.legal.size()));
  RC_ASSERT(plan.num_fit == static_cast<int64_t>(truth.fitting.size()));
  RC_ASSERT(plan.num_legal == plan.num_priced + plan.num_pruned);
  RC_ASSERT(texts(plan.best) == first_texts(truth.fitting, 10));
  RC_ASSERT(texts(plan.pareto) == texts(truth.front));
  RC_ASSERT(plan.why_none_is_legal.empty() == (plan.num_legal > 0));
}

RC_GTEST_PROP(Search, FindsTheSameWithAndWithoutPruning, ()) {
  const spec::Job job = any_job();
  SearchOptions options = plain(any_constraints());
  show(job, options.fix);
  const Plan pruned = find_plan(job, options);
  options.prune = false;
  const Plan all = find_plan(job, options);
  RC_ASSERT(all.num_pruned == 0);
  RC_ASSERT(pruned.num_legal == all.num_legal);
  RC_ASSERT(pruned.num_fit == all.num_fit);
  RC_ASSERT(texts(pruned.best) == texts(all.best));
  RC_ASSERT(texts(pruned.pareto) == texts(all.pareto));
}

RC_GTEST_PROP(Search, FindsTheSameEveryTime, ()) {
  const spec::Job job = any_job();
  const SearchOptions options = {.fix = any_constraints()};
  show(job, options.fix);
  const Plan first = find_plan(job, options);
  const Plan second = find_plan(job, options);
  RC_ASSERT(texts(first.best) == texts(second.best));
  RC_ASSERT(texts(first.pareto) == texts(second.pareto));
  RC_ASSERT(texts(first.nearest_misses) == texts(second.nearest_misses));
  RC_ASSERT(first.num_priced == second.num_priced);
}

// The kernels and schedules that a search leaves out: fixing one never finds anything faster.
RC_GTEST_PROP(Search, LosesNothingByLeavingOutWhatCannotWin, ()) {
  const spec::Job job = any_job();
  const std::string fixed = *rc::gen::element<std::string>("attn=unfused", "attn=fused-softmax", "attn=flash1",
                                                           "norm=unfused", "sched=gpipe", "sched=1f1b");
  const layout::LayoutConstraints fix = layout::parse_constraints(fixed);
  show(job, fix);
  const Plan narrow = find_plan(job, plain(fix));
  RC_PRE(!narrow.best.empty());
  const Plan wide = find_plan(job, plain());
  RC_ASSERT(!wide.best.empty());
  RC_ASSERT(wide.best.front().price.step_seconds <= narrow.best.front().price.step_seconds * (1 + 1e-12));
}

RC_GTEST_PROP(Search, IsNeverFasterWithMoreConstraints, ()) {
  const spec::Job job = any_job();
  layout::LayoutConstraints few = any_constraints();
  layout::LayoutConstraints many = few;
  many.mb = *rc::gen::element<int64_t>(1, 2, 4);
  if (!many.zero) {
    many.zero = *rc::gen::element(0, 1, 2, 3);
    many.hsdp = 0;
  }
  show(job, many);
  RC_PRE(!few.mb);
  const Plan free = find_plan(job, plain(few));
  const Plan fixed = find_plan(job, plain(many));
  RC_ASSERT(fixed.num_legal <= free.num_legal);
  if (fixed.best.empty()) return;
  RC_ASSERT(!free.best.empty());
  RC_ASSERT(free.best.front().price.step_seconds <= fixed.best.front().price.step_seconds);
}

RC_GTEST_PROP(Search, IsNeverSlowerWithMoreMemory, ()) {
  const spec::Job job = any_job();
  const SearchOptions options = plain(any_constraints());
  spec::Job larger = job;
  larger.cluster.gpu.memory_bytes *= *rc::gen::element(1.01, 1.3, 4.0);
  show(job, options.fix);
  const Plan small = find_plan(job, options);
  const Plan large = find_plan(larger, options);
  RC_ASSERT(large.num_legal == small.num_legal);
  RC_ASSERT(large.num_fit >= small.num_fit);
  if (small.best.empty()) return;
  RC_ASSERT(large.best.front().price.step_seconds <= small.best.front().price.step_seconds * (1 + 1e-12));
}

// The rule that pruning stands on.
RC_GTEST_PROP(Search, NeedsNoLessMemoryWithALargerMicroBatch, ()) {
  const spec::Job job = any_job();
  show(job);
  layout::LayoutConstraints fix;
  const std::vector<layout::Layout> legal = legal_layouts(job, fix);
  RC_PRE(!legal.empty());
  cost::Pricer pricer(job);
  for (int i = 0; i < 200; ++i) {
    layout::Layout layout = *rc::gen::elementOf(legal);
    layout.schedule = layout.vp > 1 ? layout.schedule : *rc::gen::elementOf(job.engine.schedules);
    RC_LOG() << layout::to_text(layout);
    double before = 0;
    for (layout.mb = 1; layout.mb * layout.dp <= job.global_batch; ++layout.mb) {
      if (!layout::is_legal(layout, job)) continue;
      const double bytes = pricer.peak_memory_bytes(layout);
      RC_ASSERT(bytes >= before / micro_batch_memory_slack(job.engine) * (1 - 1e-12));
      before = std::max(before, bytes);
    }
  }
}

RC_GTEST_PROP(Search, RefinesToNothingWorse, ()) {
  const spec::Job job = any_job();
  SearchOptions options = plain(any_constraints());
  show(job, options.fix);
  const Plan coarse = find_plan(job, options);
  options.refine = true;
  const Plan fine = find_plan(job, options);
  RC_ASSERT(fine.best.size() >= coarse.best.size());
  RC_ASSERT(std::is_sorted(fine.best.begin(), fine.best.end(), is_faster));
  for (size_t i = 0; i < fine.best.size(); ++i) {
    RC_ASSERT(fine.best[i].price.fits);
    RC_ASSERT(layout::is_legal(fine.best[i].layout, job));
    RC_ASSERT(options.fix.matches(fine.best[i].layout));
    if (i < coarse.best.size()) {
      RC_ASSERT(fine.best[i].price.step_seconds <= coarse.best[i].price.step_seconds);
    }
  }
}

// With a memory in which not even the smallest layout fits.
spec::Job crowded_job() {
  spec::Job job = any_job();
  const Plan roomy = find_plan(job, plain());
  RC_PRE(!roomy.best.empty());
  const auto smallest = std::min_element(roomy.pareto.begin(), roomy.pareto.end(), [](const auto& a, const auto& b) {
    return a.price.peak_memory_bytes < b.price.peak_memory_bytes;
  });
  job.cluster.gpu.memory_bytes = smallest->price.peak_memory_bytes * *rc::gen::element(0.3, 0.7, 0.95);
  return job;
}

RC_GTEST_PROP(Search, NamesTheNearestMissesWhenNothingFits, ()) {
  const spec::Job job = crowded_job();
  show(job);
  const Plan plan = find_plan(job, {});
  RC_PRE(plan.best.empty());
  RC_ASSERT(plan.num_fit == 0);
  RC_ASSERT(plan.pareto.empty());
  RC_ASSERT(!plan.nearest_misses.empty());
  for (size_t i = 0; i < plan.nearest_misses.size(); ++i) {
    const cost::StepPrice& price = plan.nearest_misses[i].price;
    RC_ASSERT(price.peak_memory_bytes > price.capacity_bytes);
    if (i > 0) RC_ASSERT(price.peak_memory_bytes >= plan.nearest_misses[i - 1].price.peak_memory_bytes);
  }
  for (const layout::Layout& layout : legal_layouts(job, {})) {
    RC_ASSERT(cost::Pricer(job).peak_memory_bytes(layout) >= plan.nearest_misses.front().price.peak_memory_bytes);
  }
}

RC_GTEST_PROP(Search, OffersRemediesThatFit, ()) {
  const spec::Job job = crowded_job();
  show(job);
  const Plan plan = find_plan(job, {});
  RC_PRE(plan.best.empty());
  for (const Remedy& remedy : plan.remedies) {
    RC_LOG() << remedy.change << ": " << layout::to_text(remedy.layout.layout);
    RC_ASSERT(!remedy.change.empty());
    RC_ASSERT(remedy.layout.price.fits);
    spec::Job changed = job;
    if (remedy.change.find(" GPUs") != std::string::npos) {
      changed.num_gpus = std::stoll(remedy.change);
      RC_ASSERT(changed.num_gpus > job.num_gpus);
      RC_ASSERT(changed.num_gpus < job.cluster.gpus_per_node || changed.num_gpus % job.cluster.gpus_per_node == 0);
    } else if (remedy.change.find("sequences of ") == 0) {
      changed.sequence_length = std::stoll(remedy.change.substr(13));
      changed.global_batch = job.global_batch * job.sequence_length / changed.sequence_length;
      RC_ASSERT(changed.tokens_per_step() == job.tokens_per_step());
    } else if (remedy.change.find("ZeRO-3") == 0) {
      changed.engine.zero_stages = {3};
    }
    RC_ASSERT(layout::is_legal(remedy.layout.layout, changed));
    RC_ASSERT(cost::Pricer(changed).price(remedy.layout.layout).fits);
  }
}

TEST(Search, SaysWithNumbersWhyNoLayoutIsLegal) {
  const struct {
    const char* fix;
    const char* engine;
    std::vector<std::string> parts;
  } cases[] = {
      {"tp3", "aleph-scaling", {"3", "64"}},
      {"pp64 tp1", "aleph-scaling", {"64", "40"}},
      {"mb3", "aleph-scaling", {"3", "2048"}},
      {"dp5", "aleph-scaling", {"5", "64"}},
      {"zero3", "aleph-scaling", {"ZeRO-3", "1"}},
      {"cp2", "aleph-scaling", {"context"}},
      {"tp64", "aleph-scaling", {"64", "40"}},
      {"vp2 pp1", "layline", {"vp", "2"}},
      {"pp3", "layline", {"3", "64"}},
  };
  for (const auto& one : cases) {
    const spec::Job job = test::make_job({.engine = one.engine});
    const Plan plan = find_plan(job, plain(layout::parse_constraints(one.fix)));
    EXPECT_EQ(plan.num_legal, 0) << one.fix;
    EXPECT_TRUE(plan.best.empty() && plan.nearest_misses.empty()) << one.fix;
    for (const std::string& part : one.parts) {
      EXPECT_NE(plan.why_none_is_legal.find(part), std::string::npos) << one.fix << ": " << plan.why_none_is_legal;
    }
  }
}

TEST(Search, StopsAtTheAskedNumberOfLayouts) {
  const spec::Job job = test::make_job({});
  SearchOptions options = plain();
  for (const size_t top : {1u, 3u, 1000u}) {
    options.top = top;
    const Plan plan = find_plan(job, options);
    EXPECT_EQ(plan.best.size(), std::min(top, static_cast<size_t>(plan.num_fit)));
  }
}

TEST(Search, RanksByTimeAndBreaksTiesTheSameWayInAnyOrder) {
  PricedLayout a, b, c;
  a.price.step_seconds = b.price.step_seconds = 1;
  c.price.step_seconds = 2;
  a.layout.dp = 1;
  b.layout.dp = 2;
  EXPECT_TRUE(is_faster(a, c));
  EXPECT_FALSE(is_faster(c, a));
  EXPECT_NE(is_faster(a, b), is_faster(b, a));
  EXPECT_FALSE(is_faster(a, a));
}

}  // namespace
}  // namespace layline::search
