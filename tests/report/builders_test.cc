#include "layline/report/builders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layline/report/comparison.h"
#include "layline/report/runs_dataset.h"
#include "layline/report/systems.h"
#include "tests/report/hand_made.h"

namespace layline::report {
namespace {

using test::predicted;
using test::Predicted;
using test::Run;
using testing::Contains;
using testing::HasSubstr;

// The cell of a row in the column of that title.
std::string cell(const Table& table, size_t row, const std::string& title) {
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].title == title) return table.rows.at(row).at(c);
  }
  return "no column " + title;
}

std::vector<std::string> column(const Table& table, const std::string& title) {
  std::vector<std::string> cells;
  for (size_t row = 0; row < table.rows.size(); ++row) cells.push_back(cell(table, row, title));
  return cells;
}

TEST(MicroBatches, ShowTheFastestRunOfEachSize) {
  const Predicted all = predicted({{.mb = "1", .tp = "2", .seconds = "29"},
                                   {.mb = "1", .tp = "4", .seconds = "27"},
                                   {.mb = "2", .tp = "2", .seconds = "33"},
                                   {.mb = "4", .tp = "2", .status = "oom"}});
  const Section section = micro_batches(all.list());
  ASSERT_EQ(section.charts.size(), 1u);
  const Table& table = section.charts[0].table;
  EXPECT_EQ(column(table, "micro-batch"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(column(table, "step, s"), (std::vector<std::string>{"27.00", "33.00"}));
  EXPECT_EQ(cell(table, 0, "best layout"), "tp4 pp1 mb1");
}

TEST(MicroBatches, SayWhenThereIsNothingToCompare) {
  const Section section = micro_batches(predicted({{.seconds = "29"}, {.tp = "2", .seconds = "30"}}).list());
  EXPECT_TRUE(section.charts.empty());
  EXPECT_THAT(section.text, Contains(HasSubstr("nothing to compare")));
}

TEST(Agreement, CountsTheExceptionAndWhatItCosts) {
  // Measured against all reason: it is faster to compute everything again.
  const Predicted all = predicted({{.tp = "2", .pp = "2", .recompute = "none", .seconds = "60"},
                                   {.tp = "2", .pp = "2", .recompute = "full", .seconds = "40"}});
  const Comparison comparison{.choice = "checkpointing", .field = "ckpt", .choice_of = checkpointing_text};
  const Agreement agreement = agreement_of(all.list(), comparison);
  ASSERT_EQ(agreement.num_groups, 1);
  ASSERT_EQ(agreement.num_same, 0);
  EXPECT_THAT(agreement.exceptions,
              testing::ElementsAre(HasSubstr("full was best, none is predicted, which costs 50.0 %")));
}

TEST(Checkpointing, IsComparedForEachKernelApart) {
  const Predicted all = predicted({{.norm = "fused", .seconds = "27"},
                                   {.norm = "unfused", .seconds = "30"},
                                   {.recompute = "full", .norm = "unfused", .seconds = "36"}});
  const Section section = checkpointing(all.list());
  ASSERT_EQ(section.charts.size(), 1u);
  // The fused norm never ran with checkpointing, so it is not in the comparison.
  EXPECT_EQ(column(section.charts[0].table, "kernel"),
            (std::vector<std::string>{"FlashAttention 2", "FlashAttention 2"}));
  EXPECT_EQ(column(section.charts[0].table, "checkpointing"), (std::vector<std::string>{"full", "none"}));
}

TEST(TensorAgainstPipeline, SaysWhichCellsRanOutOfMemory) {
  const Predicted all = predicted({{.tp = "1", .pp = "1", .status = "oom"},
                                   {.tp = "2", .pp = "1", .seconds = "29"},
                                   {.mb = "2", .tp = "2", .pp = "1", .seconds = "28"}});
  const Table table = tensor_against_pipeline(all.list()).charts.at(0).table;
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(cell(table, 0, "MFU, %"), "out of memory");
  EXPECT_EQ(cell(table, 1, "step, s"), "28.00");
}

TEST(SequenceParallelism, PairsRunsThatDifferInNothingElse) {
  const Predicted all = predicted({{.tp = "2", .sp = "0", .seconds = "33"},
                                   {.tp = "2", .sp = "1", .seconds = "30"},
                                   {.mb = "2", .tp = "2", .sp = "1", .seconds = "31"},
                                   {.tp = "1", .sp = "0", .seconds = "27"}});
  Datasets datasets;
  const Section section = sequence_parallelism(all.list(), datasets);
  ASSERT_EQ(section.charts.size(), 2u);
  const Table& pairs = section.charts[1].table;
  ASSERT_EQ(pairs.rows.size(), 1u);
  EXPECT_EQ(cell(pairs, 0, "faster by, %"), "+10.0");
  ASSERT_EQ(datasets.at("sp_pairs").rows.size(), 1u);
}

TEST(OutOfMemory, CountsVerdictsByWhatCameOut) {
  // The second cannot fit and is said to have run; the third cannot fit and did not.
  const Predicted all = predicted({{.tp = "2", .pp = "2", .seconds = "30"},
                                   {.gpus = "32", .mb = "64", .tp = "1", .pp = "1", .seconds = "30"},
                                   {.mb = "32", .tp = "1", .pp = "1", .status = "oom"}});
  const Table table = out_of_memory(all.list()).charts.at(0).table;
  int64_t right_fits = 0, right_out = 0, alarms = 0;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    right_fits += std::stoll(cell(table, row, "ran, said to fit"));
    right_out += std::stoll(cell(table, row, "out of memory, said so"));
    alarms += std::stoll(cell(table, row, "ran, said to be out"));
  }
  EXPECT_EQ(right_fits, 1);
  EXPECT_EQ(right_out, 1);
  EXPECT_EQ(alarms, 1);
}

TEST(StageMemory, OfEveryStageAddsUpToItsSum) {
  const Predicted all = predicted({{.tp = "2", .pp = "4", .seconds = "30"}});
  Datasets datasets;
  const Section section = stage_memory(all.list(), "", datasets);
  const Table& table = section.charts.at(0).table;
  ASSERT_EQ(table.rows.size(), 4u);
  const Dataset& stages = datasets.at("stages");
  const auto field = [&](const std::string& name) {
    return std::find(stages.fields.begin(), stages.fields.end(), name) - stages.fields.begin();
  };
  for (size_t stage = 0; stage < 4; ++stage) {
    double sum = 0;
    for (const auto& row : stages.rows) {
      if (row[field("stage")] == stage) sum += row[field("gib")].get<double>();
    }
    EXPECT_NEAR(sum, std::stod(cell(table, stage, "all")), 0.06);
  }
}

TEST(PipelineTimelines, DrawEveryRankOfThePipelineOnce) {
  const Predicted all = predicted({{.tp = "2", .pp = "4", .seconds = "30"}, {.seconds = "26"}});
  Datasets datasets;
  const Section section = pipeline_timelines(all.list(), "", datasets);
  ASSERT_EQ(section.charts.size(), 1u);
  // 8 micro-batches, forward and backward, on 4 ranks.
  EXPECT_EQ(datasets.at("timeline").rows.size(), 8u * 2 * 4);
}

TEST(PipelineTimelines, SayWhenNothingIsAPipeline) {
  Datasets datasets;
  const Section section = pipeline_timelines(predicted({{.seconds = "26"}}).list(), "", datasets);
  EXPECT_TRUE(section.charts.empty());
  EXPECT_FALSE(section.text.empty());
}

TEST(Systems, LeavesOutSmallModelsTestsAndUnscoredRuns) {
  const Predicted all = predicted({{.seconds = "27", .source = "MosaicML llm-foundry benchmarks"},
                                   {.mb = "2", .seconds = "26", .source = "MosaicML llm-foundry benchmarks"},
                                   {.seconds = "27", .source = "Megatron-LM functional-test golden values"},
                                   {.seconds = "27", .source = "NVIDIA NeMo", .scored = "0"}});
  Datasets datasets;
  const Section section = systems(all.list(), datasets);
  const Table& table = section.charts.at(0).table;
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(cell(table, 0, "system"), "MPT (llm-foundry)");
  EXPECT_THAT(cell(table, 0, "layout"), HasSubstr("mb2"));
}

RC_GTEST_PROP(ParetoFront, HoldsTheRunsThatNoOtherBeatsInBoth, ()) {
  const auto num_runs = *rc::gen::inRange(1, 12);
  std::vector<Run> made;
  for (int i = 0; i < num_runs; ++i) {
    made.push_back({.seconds = std::to_string(*rc::gen::inRange(20, 30)),
                    .memory_gib = std::to_string(*rc::gen::inRange(40, 50))});
  }
  const Predicted all = predicted(made);
  const RunList front = pareto_front(all.list());
  const auto beats = [](const ReportRun& a, const ReportRun& b) {
    return *a.seconds <= *b.seconds && *a.memory_bytes <= *b.memory_bytes &&
           (*a.seconds < *b.seconds || *a.memory_bytes < *b.memory_bytes);
  };
  for (const ReportRun& run : all.runs) {
    const bool is_beaten =
        std::any_of(all.runs.begin(), all.runs.end(), [&](const ReportRun& o) { return beats(o, run); });
    const bool is_on_front = std::find(front.begin(), front.end(), &run) != front.end();
    if (is_beaten) RC_ASSERT(!is_on_front);
    if (!is_beaten) {
      // Of equal runs one is enough.
      RC_ASSERT(std::any_of(front.begin(), front.end(), [&](const ReportRun* f) {
        return *f->seconds == *run.seconds && *f->memory_bytes == *run.memory_bytes;
      }));
    }
  }
}

}  // namespace
}  // namespace layline::report
