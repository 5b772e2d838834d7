#include "layline/study/evidence.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "layline/layout/legality.h"
#include "layline/search/enumerate.h"
#include "tests/study/hand_made.h"

namespace layline::study {
namespace {

// Micro-batches: 1 against 2 agrees by 10 %, 1 against 4 does not; once each side alone fits.
std::vector<runs::RunRecord> few_runs(const spec::Job& job) {
  return {run_of(job, "tp1 pp2 mb1", 10), run_of(job, "tp1 pp2 mb2", 11), run_of(job, "tp1 pp2 mb4", 9),
          run_of(job, "tp2 pp1 mb1", 8),  run_of(job, "tp2 pp1 mb2", 0),  run_of(job, "tp2 pp2 mb1", 0),
          run_of(job, "tp2 pp2 mb2", 12)};
}

TEST(Evidence, CountsPairsThatDifferInTheMicroBatchOnly) {
  const EvidenceSummary summary = evidence_of(few_runs(small_job()));
  EXPECT_EQ(summary.num_runs, 7);
  EXPECT_EQ(summary.num_sweeps, 1);
  const Evidence& evidence = of_rule(summary, "micro-batch-1");
  ASSERT_EQ(evidence.pairs.size(), 2u);
  EXPECT_EQ(evidence.num_agreeing(), 1);
  EXPECT_NEAR(*evidence.median_gain(), 0, 1e-12);
  EXPECT_EQ(evidence.num_only_follows_fits, 1);
  EXPECT_EQ(evidence.num_only_breaks_fits, 1);
  ASSERT_EQ(evidence.exceptions().size(), 1u);
  EXPECT_EQ(evidence.exceptions()[0].breaks.layout.mb, 4);
  EXPECT_NEAR(evidence.exceptions()[0].gain, -0.1, 1e-12);
}

TEST(Evidence, HoldsTheFastestOfBothSidesAgainstEachOther) {
  const EvidenceSummary summary = evidence_of(few_runs(small_job()));
  const Evidence& evidence = of_rule(summary, "micro-batch-1");
  ASSERT_EQ(evidence.best.size(), 1u);
  EXPECT_EQ(evidence.best[0].follows.seconds, 8);
  EXPECT_EQ(evidence.best[0].breaks.seconds, 9);
  EXPECT_EQ(evidence.num_best_agreeing(), 1);
}

TEST(Evidence, ComparesPipelineWithTensorParallelismAtTheSameProduct) {
  const EvidenceSummary summary = evidence_of(few_runs(small_job()));
  const Evidence& evidence = of_rule(summary, "pipeline-over-tensor");
  ASSERT_EQ(evidence.pairs.size(), 1u);  // tp1 pp2 mb1 against tp2 pp1 mb1; not against tp2 pp2
  EXPECT_NEAR(evidence.pairs[0].gain, -0.2, 1e-12);
  EXPECT_EQ(evidence.num_only_follows_fits, 1);  // mb2
}

TEST(Evidence, PairsCheckpointingWithMoreModelParallelism) {
  const spec::Job job = small_job();
  const EvidenceSummary summary =
      evidence_of({run_of(job, "tp2 pp1 mb1", 10), run_of(job, "tp1 pp1 mb1 ckpt=full", 12),
                   run_of(job, "tp4 pp1 mb1 ckpt=full", 15), run_of(job, "tp2 pp1 mb2 ckpt=full", 11)});
  const Evidence& evidence = of_rule(summary, "model-parallel-over-checkpointing");
  ASSERT_EQ(evidence.pairs.size(), 1u);  // only the one with less parallelism at the same micro-batch
  EXPECT_NEAR(evidence.pairs[0].gain, 0.2, 1e-12);
}

TEST(Evidence, CountsRepeatsOnceByTheirMedian) {
  const spec::Job job = small_job();
  const EvidenceSummary summary = evidence_of({run_of(job, "tp1 pp1 mb1", 10), run_of(job, "tp1 pp1 mb1", 30),
                                               run_of(job, "tp1 pp1 mb1", 11), run_of(job, "tp1 pp1 mb2", 12.1)});
  const Evidence& evidence = of_rule(summary, "micro-batch-1");
  ASSERT_EQ(evidence.pairs.size(), 1u);
  EXPECT_NEAR(evidence.pairs[0].gain, 0.1, 1e-12);
}

TEST(Evidence, KeepsSweepsApart) {
  const spec::Job job = small_job();
  for (const std::string other : {"gpus", "batch", "length", "model", "source", "sweep"}) {
    spec::Job second = job;
    if (other == "gpus") second.num_gpus = 4;
    if (other == "batch") second.global_batch = 128;
    if (other == "length") second.sequence_length = 2048;
    if (other == "model") second.model = spec::get_model("llama-13b");
    std::vector<runs::RunRecord> records = {run_of(job, "tp1 pp1 mb1", 10), run_of(second, "tp1 pp1 mb2", 12)};
    if (other == "source") records[1].source = "another";
    if (other == "sweep") records[1].notes = "sweep=another";
    const EvidenceSummary summary = evidence_of(records);
    EXPECT_EQ(summary.num_sweeps, 2) << other;
    EXPECT_TRUE(of_rule(summary, "micro-batch-1").pairs.empty()) << other;
  }
}

TEST(Evidence, DoesNotMixKernelsThatOnlyRecordsTellApart) {
  const spec::Job job = small_job();
  std::vector<runs::RunRecord> records = {run_of(job, "tp1 pp1 mb1", 10), run_of(job, "tp1 pp1 mb2", 12)};
  EXPECT_EQ(of_rule(evidence_of(records), "micro-batch-1").pairs.size(), 1u);
  records[1].attention_kernel = "flash_attention_triton";  // the same kernel to a layout
  EXPECT_TRUE(of_rule(evidence_of(records), "micro-batch-1").pairs.empty());
}

TEST(Evidence, LeavesOutRunsThatSayNothing) {
  const spec::Job job = small_job();
  std::vector<runs::RunRecord> records(5, run_of(job, "tp1 pp1 mb2", 12));
  records[0].scored = false;
  records[1].status = runs::RunStatus::kFail;
  records[2].status.reset();
  records[3].step_time_s.reset();
  records[4].hidden.reset();
  records.push_back(run_of(job, "tp1 pp1 mb1", 10));
  const EvidenceSummary summary = evidence_of(records);
  EXPECT_EQ(summary.num_runs, 1);
  EXPECT_EQ(summary.num_unused, 5);
  EXPECT_TRUE(of_rule(summary, "micro-batch-1").pairs.empty());
}

TEST(Evidence, SpeaksOfSequenceParallelismOnlyWhereTheRuleDoes) {
  const spec::Job large = small_job();  // 4k tokens
  spec::Job small = large;
  small.sequence_length = 2048;
  const auto evidence = [](const spec::Job& job) {
    return evidence_of({run_of(job, "tp2 pp1 mb1 sp", 10), run_of(job, "tp2 pp1 mb1", 11)});
  };
  EXPECT_EQ(of_rule(evidence(large), "sequence-parallel").pairs.size(), 1u);
  EXPECT_TRUE(of_rule(evidence(small), "sequence-parallel").pairs.empty());
}

TEST(Evidence, FindsTheRunsThatARuleWouldHavePrescribed) {
  const spec::Job job = job_of("llama-13b", 8, "a100-80gb", "aleph-scaling", 64, 2048);
  const EvidenceSummary summary =
      evidence_of({run_of(job, "tp2 pp1 mb1", 11), run_of(job, "tp2 pp1 mb2", 12), run_of(job, "tp1 pp2 mb1", 10)});
  const Evidence& table = of_rule(summary, "megatron-table");  // 13B: tp2 pp1
  ASSERT_EQ(table.best.size(), 1u);
  EXPECT_EQ(table.best[0].follows.seconds, 11);
  EXPECT_EQ(table.best[0].breaks.seconds, 10);
  EXPECT_EQ(table.num_best_agreeing(), 0);  // 9 % off the best
}

std::vector<layout::Layout> all_layouts(const spec::Job& job) {
  std::vector<layout::Layout> layouts;
  for (const search::Mesh& mesh : search::meshes(job, {})) {
    search::for_each_layout(
        job, {}, mesh,
        [&](const layout::Layout& layout) {
          layouts.push_back(layout);
          return search::Visit::kNext;
        },
        [](const layout::Layout&) {});
  }
  return layouts;
}

// Any runs of any layouts: the pairs are all those that the definition allows, found by trying all of them.
RC_GTEST_PROP(Evidence, FindsExactlyThePairsOfItsDefinition, ()) {
  const spec::Job job = small_job();
  static const std::vector<layout::Layout> all = all_layouts(job);
  std::set<std::string> seen;
  std::vector<layout::Layout> layouts;
  std::vector<double> seconds;
  std::vector<runs::RunRecord> records;
  const auto count = *rc::gen::inRange<size_t>(2, 30);
  for (size_t i = 0; i < count; ++i) {
    layout::Layout layout = *rc::gen::elementOf(all);
    layout.norm = *rc::gen::element(layout::NormKernel::kFused, layout::NormKernel::kUnfused);
    if (!seen.insert(layout::to_text(layout)).second) continue;
    layouts.push_back(layout);
    seconds.push_back(*rc::gen::element(0.0, 1.0, 2.0, 3.0));
    records.push_back(run_of(job, layout, seconds.back()));
  }
  const EvidenceSummary summary = evidence_of(records);
  Surroundings around;
  for (const Evidence& evidence : summary.rules) {
    if (!evidence.rule->is_comparison() || !evidence.rule->why_not(job).empty()) continue;
    int64_t both = 0, only_follows = 0, only_breaks = 0;
    for (size_t a = 0; a < layouts.size(); ++a) {
      for (size_t b = 0; b < layouts.size(); ++b) {
        if (!evidence.rule->is_pair(layouts[a], layouts[b], around)) continue;
        if (!differ_only_in(evidence.rule->axes, layouts[a], layouts[b])) continue;
        both += seconds[a] > 0 && seconds[b] > 0;
        only_follows += seconds[a] > 0 && seconds[b] == 0;
        only_breaks += seconds[a] == 0 && seconds[b] > 0;
      }
    }
    RC_ASSERT(static_cast<int64_t>(evidence.pairs.size()) == both);
    RC_ASSERT(evidence.num_only_follows_fits == only_follows);
    RC_ASSERT(evidence.num_only_breaks_fits == only_breaks);
  }
}

}  // namespace
}  // namespace layline::study
