#include "layline/study/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layline/layout/legality.h"
#include "layline/search/enumerate.h"
#include "layline/search/search.h"
#include "layline/study/tolerance.h"
#include "tests/search/jobs.h"
#include "tests/study/hand_made.h"

namespace layline::study {
namespace {

using search::PricedLayout;
using testing::HasSubstr;

TEST(Advice, MicroBatch1HoldsForThePapersJobs) {
  const spec::Job jobs[] = {paper_job(), job_of("llama-30b", 256, "a100-80gb", "aleph-scaling", 2048, 2048),
                            job_of("llama-65b", 128, "a100-80gb", "aleph-scaling", 2048, 2048)};
  for (const spec::Job& job : jobs) {
    const Advice advice = advise(job);
    const Outcome& outcome = of_rule(advice, "micro-batch-1");
    EXPECT_EQ(outcome.verdict, Verdict::kHolds) << job.model.name << " " << outcome.gain.value_or(-1);
    EXPECT_EQ(outcome.follows->layout.mb, 1);
    EXPECT_GT(outcome.other->layout.mb, 1);
    EXPECT_EQ(advice.best->layout.mb, 1);
  }
}

// The fastest flash1 run had unfused norms, and so must the flash2 run that it is held against.
TEST(Advice, HoldsMeasuredKernelsAgainstEachOtherWithAllOthersTheSame) {
  const Advice advice = advise(paper_job());
  const MeasuredSides attention = of_rule(advice, "flash-attention-2").measured.value();
  EXPECT_EQ(attention.follows.layout.norm, attention.other.layout.norm);
  EXPECT_NE(attention.follows.layout.attention, attention.other.layout.attention);
  const MeasuredSides norm = of_rule(advice, "fused-norm").measured.value();
  EXPECT_EQ(norm.follows.layout.attention, norm.other.layout.attention);
  EXPECT_NE(norm.follows.layout.norm, norm.other.layout.norm);
}

TEST(Advice, TheFusedNormAndFlashAttentionHoldForThePapersJob) {
  const Advice advice = advise_by_price(paper_job(), nullptr);
  for (const char* id : {"flash-attention-2", "fused-norm", "model-parallel-over-checkpointing"}) {
    EXPECT_EQ(of_rule(advice, id).verdict, Verdict::kHolds) << id;
  }
}

TEST(Advice, SaysWhyARuleDoesNotApply) {
  const Advice small = advise(paper_job());
  EXPECT_EQ(of_rule(small, "sequence-parallel").verdict, Verdict::kDoesNotApply);  // 13B, 2k
  EXPECT_THAT(of_rule(small, "sequence-parallel").reason, HasSubstr("30B"));
  const Advice sharded = advise(job_of("mpt-7b", 16, "a100-80gb", "llm-foundry", 64, 2048));
  EXPECT_EQ(of_rule(sharded, "pipeline-over-tensor").verdict, Verdict::kDoesNotApply);
  EXPECT_THAT(of_rule(sharded, "pipeline-over-tensor").reason, HasSubstr("tensor parallelism"));
}

TEST(Advice, ReasonsComeFromTheTermsThatDiffer) {
  const Advice advice = advise(paper_job());
  for (const Outcome& outcome : advice.outcomes) {
    EXPECT_NE(outcome.reason, "") << outcome.rule->id;
    if (!outcome.gain || outcome.follows->layout == outcome.other->layout) continue;
    double difference = 0;
    for (const search::Difference& term : outcome.seconds) difference += term.second - term.first;
    const double step = outcome.follows->price.step_seconds;
    EXPECT_NEAR(difference, outcome.other->price.step_seconds - step, 1e-6 * step) << outcome.rule->id;
  }
}

TEST(Advice, SaysWhatTurnsWhereTheLayoutIsAnother) {
  int64_t num_exceptions = 0;
  for (const spec::Job& job : {paper_job(), small_job(), job_of("llama-13b", 16, "h100-80gb", "layline", 64, 8192)}) {
    for (const Outcome& outcome : advise(job).outcomes) {
      for (const Exception& exception : outcome.exceptions) {
        ++num_exceptions;
        EXPECT_GT(std::abs(exception.gain), kNoticeable);
        EXPECT_EQ(exception.gain < 0, outcome.verdict != Verdict::kBreaks) << outcome.rule->id;
        EXPECT_NE(exception.reason, "");
      }
    }
  }
  EXPECT_GT(num_exceptions, 0);
}

TEST(Advice, SaysThatNothingFits) {
  const Advice advice = advise(job_of("llama-65b", 8, "a100-40gb", "aleph-scaling", 64, 2048));
  EXPECT_FALSE(advice.best);
  EXPECT_TRUE(advice.outcomes.empty());
  EXPECT_GT(advice.num_legal, 0);
  EXPECT_THAT(advice.why_nothing_fits, HasSubstr("GiB more than there is"));
}

TEST(Advice, SaysThatNothingIsLegal) {
  const Advice advice =
      advise(job_of("llama-13b", 8, "a100-80gb", "llm-foundry", 7, 2048));  // 8 replicas of 7 sequences
  EXPECT_FALSE(advice.best);
  EXPECT_EQ(advice.num_legal, 0);
  EXPECT_THAT(advice.why_nothing_fits, HasSubstr("no layout is legal"));
}

TEST(Advice, GoesByWhatWasMeasuredInTheVeryJob) {
  const spec::Job job = paper_job();
  const Outcome outcome = of_rule(advise(job), "micro-batch-1");
  ASSERT_TRUE(outcome.measured);
  EXPECT_NEAR(*outcome.measured->follows.measured_seconds, 26.54, 0.01);  // tp1 pp1, the paper's best
  EXPECT_GT(outcome.measured->other.layout.mb, 1);
  EXPECT_EQ(outcome.known_gain(), outcome.measured->gain);
  EXPECT_GT(outcome.measured->gain, 0.05);
  for (const Outcome& priced : advise_by_price(job, nullptr).outcomes) EXPECT_FALSE(priced.measured);
}

// Of each side the fastest among all legal layouts, by pricing every one of them.
struct BruteForce {
  std::optional<PricedLayout> follows, breaks;
};

BruteForce brute_force(const Rule& rule, const spec::Job& job, const Surroundings& around) {
  BruteForce found;
  cost::Pricer pricer(job);
  for (const search::Mesh& mesh : search::meshes(job, {})) {
    search::for_each_layout(
        job, {}, mesh,
        [&](const layout::Layout& layout) {
          const PricedLayout priced{layout, pricer.price(layout), std::nullopt};
          const Side side = rule.side(layout, around);
          auto& place = side == Side::kFollows ? found.follows : found.breaks;
          const bool counts = priced.price.fits && side != Side::kNeither;
          if (counts && (!place || search::is_faster(priced, *place))) place = priced;
          return search::Visit::kNext;
        },
        [](const layout::Layout&) {});
  }
  return found;
}

RC_GTEST_PROP(Candidates, LoseNoRulesFastestLayout, ()) {
  const spec::Job job = search::any_job();
  const Candidates candidates = find_candidates(job);
  if (candidates.fitting.empty()) return;
  const Judged judged = judge(job, candidates, false);
  for (const Rule& rule : rules()) {
    if (!rule.is_comparison() || rule.breaking != nullptr) continue;
    const BruteForce brute = brute_force(rule, job, judged.around);
    for (const auto& [side, expected] :
         {std::pair(Side::kFollows, brute.follows), std::pair(Side::kBreaks, brute.breaks)}) {
      const auto found = std::find_if(candidates.fitting.begin(), candidates.fitting.end(), [&](const auto& entry) {
        return rule.side(entry.layout, judged.around) == side;
      });
      RC_ASSERT(expected.has_value() == (found != candidates.fitting.end()));
      if (expected) RC_ASSERT(found->price.step_seconds == expected->price.step_seconds);
    }
  }
}

RC_GTEST_PROP(Candidates, CountAsThePlanDoes, ()) {
  const spec::Job job = search::any_job();
  const Candidates candidates = find_candidates(job);
  const search::Plan plan = search::find_plan(job, {.fix = {}, .refine = false, .remedies = false});
  RC_ASSERT(candidates.num_legal == plan.num_legal);
  RC_ASSERT(candidates.num_fit == plan.num_fit);
  RC_ASSERT(candidates.fitting.empty() == plan.best.empty());
  if (!plan.best.empty()) RC_ASSERT(candidates.fitting.front().layout == plan.best.front().layout);
}

// What every outcome promises.
RC_GTEST_PROP(Advice, KeepsItsWordAtAnyJob, ()) {
  const Advice advice = advise(search::any_job());
  if (!advice.best) {
    RC_ASSERT(!advice.why_nothing_fits.empty());
    return;
  }
  RC_ASSERT(advice.outcomes.size() == rules().size());
  for (const Outcome& outcome : advice.outcomes) {
    RC_ASSERT(!outcome.reason.empty());
    if (!outcome.gain) continue;
    const PricedLayout &follows = *outcome.follows, &other = *outcome.other;
    RC_ASSERT(follows.price.fits && other.price.fits);
    RC_ASSERT(layout::is_legal(follows.layout, *advice.job) && layout::is_legal(other.layout, *advice.job));
    RC_ASSERT(advice.best->price.step_seconds <= follows.price.step_seconds);
    if (outcome.rule->is_comparison()) {
      RC_ASSERT(std::abs(*outcome.gain - (other.price.step_seconds / follows.price.step_seconds - 1)) < 1e-12);
      if (outcome.measured) continue;
      RC_ASSERT(outcome.verdict == (*outcome.gain > kNoticeable    ? Verdict::kHolds
                                    : *outcome.gain < -kNoticeable ? Verdict::kBreaks
                                                                   : Verdict::kNoDifference));
    } else {
      RC_ASSERT(*outcome.gain <= 0);
      RC_ASSERT((outcome.verdict == Verdict::kHolds) == (*outcome.gain >= -kPrescriptionTolerance));
    }
  }
}

}  // namespace
}  // namespace layline::study
