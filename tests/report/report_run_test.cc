#include "layline/report/report_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/hand_made.h"

namespace layline::report {
namespace {

using test::predicted;
using test::Run;
using testing::HasSubstr;

TEST(ReportRun, HasTheMfuThatThePaperPublishedForItsBestRun) {
  const auto all = predicted({{.seconds = "26.54", .mfu = "0.7057"}});
  ASSERT_TRUE(all.runs[0].mfu);
  EXPECT_NEAR(*all.runs[0].mfu, 0.7057, 0.002);
}

TEST(ReportRun, TakesTheStepTimeFromTokensPerSecond) {
  // 2048 · 2048 tokens a step over 64 GPUs of 2,000 tokens a second each.
  const auto all = predicted({{.tokens_per_s = "2000"}});
  ASSERT_TRUE(all.runs[0].seconds);
  EXPECT_NEAR(*all.runs[0].seconds, 2048.0 * 2048 / (2000 * 64), 1e-9);
  EXPECT_FALSE(all.runs[0].seconds_are_derived);
}

TEST(ReportRun, DerivesTheStepTimeFromFlopsOnlyWhereTheFormulaIsStated) {
  const std::string formula = "HARDWARE-FLOPs: formula F=96*B*s*l*h^2*(1+s/(6h)+V/(16lh)); not MFU";
  const auto all = predicted({{.tflops = "138", .notes = formula}, {.tflops = "138"}});
  ASSERT_TRUE(all.runs[0].seconds);
  EXPECT_TRUE(all.runs[0].seconds_are_derived);
  const double flops =
      96.0 * 2048 * 2048 * 40 * 5120 * 5120 * (1 + 2048.0 / (6 * 5120) + 128000.0 / (16.0 * 40 * 5120));
  EXPECT_NEAR(*all.runs[0].seconds, flops / (138e12 * 64), 1e-9);
  EXPECT_FALSE(all.runs[1].seconds);
  EXPECT_FALSE(all.runs[1].mfu);
}

TEST(ReportRun, OfAnUnknownEngineOrGpuIsKeptWithTheReasonAndWithoutAPrediction) {
  const auto all = predicted({{.seconds = "30", .engine = "nobodys-engine"}, {.seconds = "30", .hardware = "TPU v4"}});
  for (const ReportRun& run : all.runs) {
    EXPECT_FALSE(run.prediction);
    EXPECT_NE(run.why_not_predicted, "");
    EXPECT_EQ(*run.seconds, 30);
  }
  EXPECT_THAT(all.runs[0].why_not_predicted, HasSubstr("nobodys-engine"));
  EXPECT_THAT(all.runs[1].why_not_predicted, HasSubstr("TPU v4"));
}

TEST(ReportRun, OfOneNameAndDifferentBatchesIsADifferentJob) {
  std::string csv = test::csv_of({{.seconds = "30"}, {.seconds = "31"}});
  const size_t at = csv.rfind("2048,2048,");
  csv.replace(at, 10, "2048,1024,");
  const std::vector<runs::RunTable> tables = {runs::parse_runs(csv, "runs.csv")};
  const auto validation = calibrate::validate(tables, {});
  const auto runs = report_runs(validation);
  EXPECT_EQ(runs[0].job_name, "Llama-13B, 2k, 64 GPUs, batch 2,048");
  EXPECT_EQ(runs[1].job_name, "Llama-13B, 2k, 64 GPUs, batch 1,024");
}

TEST(MfuConventions, AreSaidWhenPublishedNumbersDiffer) {
  EXPECT_EQ(mfu_conventions_text(predicted({{.seconds = "26.54"}}).runs), "");
  EXPECT_THAT(mfu_conventions_text(predicted({{.seconds = "26.54", .mfu = "0.7057"}}).runs),
              HasSubstr("within a point of each"));
  const auto mixed =
      predicted({{.seconds = "26.54", .mfu = "0.7057"}, {.seconds = "26.54", .mfu = "0.654"}, {.mfu = "0.5"}});
  EXPECT_THAT(mfu_conventions_text(mixed.runs), testing::AllOf(HasSubstr("3 of the runs"), HasSubstr("In 1 the one"),
                                                               HasSubstr("(by 5."), HasSubstr("1 have no step time")));
}

TEST(LengthText, CountsInKOnlyWhenItIsWhole) {
  EXPECT_EQ(length_text(2048), "2k");
  EXPECT_EQ(length_text(131072), "128k");
  EXPECT_EQ(length_text(3000), "3,000");
  EXPECT_EQ(length_text(512), "512");
}

}  // namespace
}  // namespace layline::report
