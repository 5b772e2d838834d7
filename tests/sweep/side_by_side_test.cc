#include "layline/sweep/side_by_side.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "layline/base/error.h"
#include "layline/layout/layout_text.h"
#include "layline/spec/registry.h"

namespace layline::sweep {
namespace {

using testing::HasSubstr;
using trainer::metrics::StepRecord;

spec::Job tiny_job() {
  spec::Job job;
  job.model = spec::get_model("llama-tiny");
  job.cluster = spec::get_cluster("cpu");
  job.engine = spec::get_engine("layline");
  job.num_gpus = 2;
  job.global_batch = 8;
  job.sequence_length = 128;
  return job;
}

search::Explanation explain(const std::string& layout) {
  return search::explain(tiny_job(), layout::parse_layout(layout, {.num_gpus = tiny_job().num_gpus}));
}

// Of two stages; the second computes for longer, the first waits for longer.
StepRecord row(int64_t step, double compute) {
  StepRecord record;
  record.step = step;
  record.step_seconds = 2 * compute;
  record.seconds_by_stage = {{{"attention", 0.5 * compute}, {"pipeline", 1.5 * compute}},
                             {{"attention", compute}, {"matrix_multiplication", compute}, {"pipeline", 0.0}}};
  record.memory_bytes_by_stage = {{{"weights", 100}, {"activations", 40}}, {{"weights", 90}, {"logits", 30}}};
  record.peak_memory_bytes_by_stage = {140, 120};
  return record;
}

double measured(const std::vector<Pair>& pairs, std::string_view what) {
  for (const Pair& pair : pairs) {
    if (pair.what == what) return pair.measured;
  }
  return -1;
}

TEST(SideBySide, GivesMediansOfTheSlowestStageWithoutTheFirstSteps) {
  const SideBySide found =
      beside(tiny_job(), explain("pp2 mb1"), {row(1, 90), row(2, 80), row(3, 1), row(4, 2), row(5, 7)}, "m");
  EXPECT_EQ(found.num_steps, 3);
  EXPECT_EQ(found.slowest_stage, 1u);
  EXPECT_EQ(found.step_seconds.measured, 4);
  EXPECT_EQ(measured(found.seconds, "attention"), 2);
  EXPECT_EQ(measured(found.seconds, "matrix_multiplication"), 2);
  EXPECT_EQ(measured(found.seconds, "pipeline"), 0);
}

TEST(SideBySide, TakesTheFirstStepsWhereThereAreNoOthers) {
  EXPECT_EQ(beside(tiny_job(), explain("pp2 mb1"), {row(1, 3), row(2, 5)}, "m").step_seconds.measured, 8);
}

TEST(SideBySide, HasAllOfThePredictionOnce) {
  for (const char* layout : {"pp2 mb1", "pp2 mb1 ckpt=full"}) {
    const search::Explanation e = explain(layout);
    const SideBySide found = beside(tiny_job(), e, {row(1, 1)}, "m");
    const auto sum = [](const std::vector<Pair>& pairs) {
      return std::accumulate(pairs.begin(), pairs.end(), 0.0, [](double s, const Pair& p) { return s + p.predicted; });
    };
    EXPECT_NEAR(sum(found.seconds), e.priced.price.step_seconds, 1e-9 * e.priced.price.step_seconds);
    ASSERT_EQ(found.stages.size(), 2u);
    for (size_t stage = 0; stage < 2; ++stage) {
      const double total = e.stages[stage].memory.total();
      EXPECT_NEAR(sum(found.stages[stage].bytes), total, 1e-9 * total);
      EXPECT_EQ(found.stages[stage].peak_bytes.predicted, total);
    }
    EXPECT_EQ(found.stages[1].peak_bytes.measured, 120);
    EXPECT_EQ(measured(found.stages[1].bytes, "logits"), 30);
  }
}

std::string mistake(const std::string& layout, const std::vector<StepRecord>& rows) {
  try {
    beside(tiny_job(), explain(layout), rows, "metrics.jsonl");
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SideBySide, RefusesMetricsOfAnotherRun) {
  EXPECT_THAT(mistake("dp2 mb1", {row(3, 1)}),
              HasSubstr("metrics.jsonl: step 3: is of 2 pipeline stages, but the layout has 1"));
  StepRecord plain = row(1, 1);
  plain.seconds_by_stage.clear();
  EXPECT_THAT(mistake("pp2 mb1", {plain}), HasSubstr("lacks seconds_by_stage"));
  StepRecord other = row(1, 1);
  other.layout = "dp1 tp1 pp2 mb2";
  EXPECT_THAT(mistake("pp2 mb1", {other}),
              HasSubstr("metrics.jsonl: step 1: is of layout \"dp1 tp1 pp2 mb2\", not of \"dp1 tp1 pp2 mb1\""));
  other.layout = "dp1 tp1 pp2 mb1";
  other.num_parameters = 5000;
  EXPECT_THAT(mistake("pp2 mb1", {other}), HasSubstr("is of a model of 5,000 parameters, but llama-tiny has"));
  EXPECT_THAT(mistake("pp2 mb1", {}), HasSubstr("metrics.jsonl: is not there, or has no step"));
}

}  // namespace
}  // namespace layline::sweep
